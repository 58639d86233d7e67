"""Python to graph: symbolic shapes, fake tensors, tracing, guards and the compiler's front end."""
