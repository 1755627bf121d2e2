-- Builds the served version's image again; the operator answers in status.lastHandledRebuild.
obj.metadata.annotations = obj.metadata.annotations or {}
obj.metadata.annotations["skills.tfrobot.io/rebuild"] = os.date("!%Y-%m-%dT%H:%M:%SZ")
return obj
