-- Nothing is fetched, built or registered until it is resumed; what is served stays served.
obj.spec.suspend = true
return obj
