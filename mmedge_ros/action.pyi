# For type checkers only: the generated messages carry no types and are not in the sources.
from typing import Any

def __getattr__(name: str) -> Any: ...
