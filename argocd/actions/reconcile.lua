-- Asks for a pass now; the operator answers in status.lastHandledReconcileAt.
obj.metadata.annotations = obj.metadata.annotations or {}
obj.metadata.annotations["skills.tfrobot.io/requestedAt"] = os.date("!%Y-%m-%dT%H:%M:%SZ")
return obj
