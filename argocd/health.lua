-- Health of a MarketplaceSource or a Skill for Argo CD. The same reading as kstatus, with Suspended on top.
-- A failure that the operator retries by itself is Progressing, so that it does not end a sync; one that only a person can mend is Degraded.
local function condition(kind)
  for _, one in ipairs((obj.status or {}).conditions or {}) do
    if one.type == kind and (one.observedGeneration == nil or one.observedGeneration == obj.metadata.generation) then
      return one
    end
  end
  return nil
end

local function is(kind)
  local one = condition(kind)
  return one ~= nil and one.status == "True"
end

local function health(status, message)
  return { status = status, message = message or "" }
end

if obj.spec ~= nil and obj.spec.suspend == true then
  return health("Suspended", "spec.suspend is true")
end

local ready = condition("Ready")
if ready == nil then
  return health("Progressing", "waiting for skill-operator to look at this generation")
end
if is("Stalled") then
  return health("Degraded", condition("Stalled").reason .. ": " .. condition("Stalled").message)
end
if is("Reconciling") or obj.status.observedGeneration ~= obj.metadata.generation or ready.status ~= "True" then
  return health("Progressing", ready.reason .. ": " .. ready.message)
end

local message = ready.message
for _, one in ipairs(obj.status.conditions) do
  -- A source whose own work is done is healthy, whatever its skills say: each of them has a health of its own.
  if one.type == "SkillsHealthy" and one.status == "False" then
    message = message .. "; " .. one.message
  end
  if one.type == "PruneBlocked" and one.status == "True" then
    message = message .. "; " .. one.message
  end
end
return health("Healthy", message)
