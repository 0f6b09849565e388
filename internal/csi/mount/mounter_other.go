//go:build !linux

package mount

import mountutils "k8s.io/mount-utils"

func mounter() mountutils.Interface { return mountutils.New("") }
