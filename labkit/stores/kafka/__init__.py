"""Kafka as a store: one topic is its own history, and a transaction outlives its process."""
