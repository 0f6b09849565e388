package mount

import mountutils "k8s.io/mount-utils"

// mounter mounts without systemd: no process serves file systems of disks, and mounts at the same time would race for
// whether there is systemd.
func mounter() mountutils.Interface { return mountutils.NewWithoutSystemd("") }
