"""Supervision: starting, waking, watching and stopping the learner beside a bot."""
