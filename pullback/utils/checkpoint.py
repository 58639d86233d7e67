"""Trade time for memory."""
