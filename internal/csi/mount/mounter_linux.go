package mount

import mountutils "k8s.io/mount-utils"

// mounter mounts without systemd. No process serves file systems of disks, so systemd is not needed. Mounts at the same time
// would race to find out whether there is systemd.
func mounter() mountutils.Interface { return mountutils.NewWithoutSystemd("") }
