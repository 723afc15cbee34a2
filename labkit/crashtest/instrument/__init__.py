"""What is put around a user's code so that its durable effects are seen where they happen.

It must not decide what an effect means, and must not change what the code does.
"""
