"""What is said to people in a terminal."""

from __future__ import annotations

from mmedge_ros.display import one_line


def test_a_foreign_text_cannot_command_the_terminal() -> None:
    assert one_line('a\x1b[2Jb\x07c\u202ed') == 'a\ufffd[2Jb\ufffdc\ufffdd'


def test_lines_are_joined_and_other_letters_kept() -> None:
    assert one_line('first\r\n  second\n\n') == 'first second'
    assert one_line('Größe 3 µm, 人') == 'Größe 3 µm, 人'
