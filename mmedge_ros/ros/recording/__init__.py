"""Recording a running graph."""
