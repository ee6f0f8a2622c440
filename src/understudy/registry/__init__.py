"""The registry: immutable numbered versions, and the pointers that say which of them plays."""
