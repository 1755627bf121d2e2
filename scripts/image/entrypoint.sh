#!/bin/sh
# First process of the operator's image, below tini: gives the user a name, then becomes Node.
#
# A cluster may run the image under any user id, and ssh, which Git calls, refuses to start for a user without a name.
# /var/lib/extrausers leads to /tmp, so that this works on a read-only root file system; without a writable /tmp only ssh is missing.
# The group is the image's own: libnss-extrausers leaves out users of group 0, where OpenShift puts them.
set -u
user=$(id -u)
if ! getent passwd "$user" >/dev/null; then
    { mkdir -p /tmp/extrausers && printf 'operator:x:%s:65532::/tmp:/usr/sbin/nologin\n' "$user" >/tmp/extrausers/passwd; } 2>/dev/null ||
        echo "skill-operator: user $user has no name and /tmp is not writable: Git over ssh will not work; mount an emptyDir at /tmp" >&2
fi
exec node "$@"
