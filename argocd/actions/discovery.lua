-- Which buttons Argo CD offers, and which of them do something now.
local suspended = obj.spec ~= nil and obj.spec.suspend == true
local actions = {
  reconcile = { disabled = suspended },
  suspend = { disabled = suspended },
  resume = { disabled = not suspended },
}
if obj.kind == "Skill" then
  -- Only a skill that brings its own Dockerfile has an image to build again.
  local served = (obj.status or {}).served or {}
  actions.rebuild = { disabled = suspended or served.image == nil }
end
return actions
