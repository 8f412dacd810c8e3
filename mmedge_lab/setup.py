"""Finds the packages of the laboratory, which lies in its own folder."""

from setuptools import find_packages, setup

setup(packages=['mmedge_lab', *(f'mmedge_lab.{name}' for name in find_packages('.'))])
