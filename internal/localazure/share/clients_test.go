package share

import "testing"

func TestCheckClients(t *testing.T) {
	yes, no := func(string) bool { return true }, func(string) bool { return false }
	for name, test := range map[string]struct {
		filesystems           string
		hasModule, hasProgram func(string) bool
		want                  string
	}{
		"modules that are loaded":     {"nodev\tcifs\nnodev\tnfs4\n", no, yes, ""},
		"modules that can be loaded":  {"nodev\tproc\n", yes, yes, ""},
		"another system of that name": {"nodev\tcifs2\n\tnfs4\n", no, yes, "SMB needs a kernel with the module cifs"},
		"no program": {"nodev\tcifs\nnodev\tnfs4\n", no, func(p string) bool { return p == "mount.cifs" },
			"NFS needs mount.nfs; install nfs-common"},
		"nothing": {"", no, no, "SMB needs a kernel with the module cifs\nSMB needs mount.cifs; install cifs-utils\n" +
			"NFS needs a kernel with the module nfsv4\nNFS needs mount.nfs; install nfs-common"},
	} {
		got := ""
		if err := checkClients(test.filesystems, test.hasModule, test.hasProgram); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
