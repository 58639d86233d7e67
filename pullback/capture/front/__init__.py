"""What users call: compile, its settings, backends, guards, explanations."""
