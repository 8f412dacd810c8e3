# Injected with -DCMAKE_PROJECT_INCLUDE=<this file> when ROS 2 comes from PyPI wheels; a normal
# ROS 2 installation does not need it. Runs once CMakeLists.txt has been read to its end.

# The wheels' targets name include folders of the machine they were built on, and CMake rejects
# an imported target with a folder that does not exist.
function(_mmedge_drop_missing_include_folders)
  get_directory_property(targets IMPORTED_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(folders ${target} INTERFACE_INCLUDE_DIRECTORIES)
    if(NOT folders)
      continue()
    endif()
    set(kept "")
    foreach(folder IN LISTS folders)
      if(folder MATCHES "\\$<" OR EXISTS "${folder}")
        list(APPEND kept "${folder}")
      endif()
    endforeach()
    set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${kept}")
  endforeach()
endfunction()

# The Python support library exports NumPy's include folder. A virtual environment inside the
# sources makes that a path below the sources, which CMake refuses to install.
function(_mmedge_keep_include_folders_private)
  get_directory_property(targets BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(folders ${target} INTERFACE_INCLUDE_DIRECTORIES)
    if(NOT folders)
      continue()
    endif()
    list(TRANSFORM folders REPLACE "^(/.*)$" "$<BUILD_INTERFACE:\\1>")
    set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${folders}")
  endforeach()
endfunction()

# The code generated for each message spends most of its time in the same headers: that of all
# messages is compiled as one file per library. What is left out does not go together.
function(_mmedge_compile_messages_together)
  get_directory_property(targets BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    if(target MATCHES "__rosidl_typesupport_(fastrtps_|introspection_c$|c$|cpp$)")
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
    endif()
  endforeach()
endfunction()

cmake_language(DEFER CALL _mmedge_drop_missing_include_folders)
cmake_language(DEFER CALL _mmedge_keep_include_folders_private)
cmake_language(DEFER CALL _mmedge_compile_messages_together)
