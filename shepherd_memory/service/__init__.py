"""The composition root: what every frontend and program uses, built and taken down in one place."""

from shepherd_memory.service.arguments import UNKNOWN_USER
from shepherd_memory.service.opening import Service, open_service
from shepherd_memory.service.user_data import SAVED_CHATS

__all__ = ["SAVED_CHATS", "UNKNOWN_USER", "Service", "open_service"]
