"""Prompts: one file a prompt, versioned and hashed (`catalog`), and token budgets that cut documents and never the frame."""
