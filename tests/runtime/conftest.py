"""Puts this folder on the import path: the core's tests share `core_language`, `core_driver`, `core_properties`."""
