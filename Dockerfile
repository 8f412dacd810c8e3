# ROS 2 Jazzy with this package, for amd64 and arm64. docs/install.md has the same steps and says
# which of them were run.
#
#   docker build -t mmedge_ros .
#   docker run --rm -v "$PWD/out:/ws/out" mmedge_ros ros2 run mmedge_ros mmedge demo --out out/demo
FROM ros:jazzy
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# Ubuntu's Python refuses pip otherwise; nothing else lives in this image.
ENV PIP_BREAK_SYSTEM_PACKAGES=1
WORKDIR /ws

COPY package.xml src/mmedge_ros/
RUN apt-get update && apt-get install -y python3-pip \
    && rosdep update \
    && rosdep install --from-paths src --ignore-src --default-yes \
    && rm -rf /var/lib/apt/lists/*
COPY requirements src/mmedge_ros/requirements
RUN pip install -r src/mmedge_ros/requirements/ubuntu.txt

COPY . src/mmedge_ros
RUN source /opt/ros/jazzy/setup.bash \
    && colcon build --packages-select mmedge_ros \
    && pip install --no-deps src/mmedge_ros/mmedge_lab

ENTRYPOINT ["/bin/bash", "-c", "source install/setup.bash && exec \"$@\"", "--"]
CMD ["ros2", "run", "mmedge_ros", "mmedge", "--help"]
