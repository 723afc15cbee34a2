"""The protocols as models, each a package of its own: parts, settings, rules, claims, narration, scenarios.

A model must not know another one, nor who explores it.
"""
