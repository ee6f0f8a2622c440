"""Telemetry: what happened, as events in a journal, and the read models that screens use."""
