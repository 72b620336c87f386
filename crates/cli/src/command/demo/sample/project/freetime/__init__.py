"""The time that a day's meetings leave."""

from .day import free
from .span import Span, merge

__all__ = ["Span", "free", "merge"]
