package health

import (
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// well are the facts of a cluster of five members without a fault.
func well() Facts {
	f := Facts{Cluster: "prod", Now: now, Deployment: "Succeeded", Backup: Backup{Name: "etcd/1.db", At: now.Add(-time.Hour)},
		Certificates: []Certificate{{"etcd of prod-cp-0", now.AddDate(1, 0, 0)}},
		Machines:     []Machine{{Name: "prod-general000000", Power: "running", Node: true, Ready: true}}}
	for _, name := range []string{"prod-cp-0", "prod-cp-1", "prod-cp-2", "prod-cp-3", "prod-cp-4"} {
		f.Members = append(f.Members, Member{Machine: Machine{Name: name, Power: "running", Node: true, Ready: true}, APIServer: true,
			Role: "voter", ID: "a1", Healthy: true, Size: 50 << 20, InUse: 40 << 20, Quota: 2 << 30})
	}
	f.Members[0].Role = "leader"
	f.Secrets = Secrets{Token: "abcdef", Taken: true, Ends: now.Add(24 * time.Hour)}
	return f
}

func die(members ...*Member) {
	for _, m := range members {
		m.Healthy, m.Fault, m.Power, m.Ready = false, "no answer", "deallocated", false
	}
}

// TestCheck checks scenarios 12 and 40 and the other faults: each is named with its remedy.
func TestCheck(t *testing.T) {
	if found := Check(well()); len(found) > 0 {
		t.Errorf("a cluster without a fault: %v", found)
	}
	for name, change := range map[string]func(*Facts){
		"a token without an end": func(f *Facts) { f.Secrets.Ends = time.Time{} },
		"an authority for years": func(f *Facts) { f.Secrets.AuthorityEnds = now.AddDate(2, 0, 0) },
		"encrypted Secrets":      func(f *Facts) { f.Secrets.EncryptionKey, f.Secrets.Encrypted = "key-20260101-abcdef", now },
		"former keys for a day":  func(f *Facts) { f.Secrets.Former, f.Secrets.Complete = 1, now.AddDate(0, 0, -1) },
	} {
		f := well()
		if change(&f); len(Check(f)) > 0 {
			t.Errorf("%s: %v", name, Check(f))
		}
	}
	for name, test := range map[string]struct {
		change func(*Facts)
		stop   bool
		want   []string
	}{
		"two of five members are lost": {func(f *Facts) { die(&f.Members[1], &f.Members[2]) }, false, []string{
			"⚠ etcd: 3 of 5 members answer; etcd can lose 0 more\n  remedy: replace the members that do not answer with kaz cluster repair prod MEMBER",
			"⚠ machines: prod-cp-1 is deallocated", "⚠ nodes: not ready: prod-cp-1, prod-cp-2"}},
		"three of five members are lost": {func(f *Facts) { die(&f.Members[1], &f.Members[2], &f.Members[3]) }, true, []string{
			"✘ etcd: 2 of 5 members answer, which is no majority: etcd takes no writes", "kaz cluster restore prod"}},
		"no majority of machines": {func(f *Facts) {
			die(&f.Members[1], &f.Members[2], &f.Members[3])
			f.Members[4].Power, f.Silent = "", "timeout"
		}, true, []string{"✘ API server: it does not answer: timeout; machines: prod-cp-0 is running, prod-cp-1 is deallocated",
			"prod-cp-4 is gone\n  remedy: start the machines that do not run: etcd needs a majority", "kaz cluster restore prod"}},
		"etcd out of reach": {func(f *Facts) { f.EtcdFault = "forbidden" }, true, []string{"✘ etcd: its members cannot be read: forbidden"}},
		"no space": {func(f *Facts) { f.Members[1].Alarms, f.Members[1].Size = []string{"NOSPACE"}, 2<<30 }, true, []string{
			"✘ alarm NOSPACE: the database of member prod-cp-1 has reached its quota: etcd takes no writes (2048 MiB of 2048 MiB, 40 MiB in use)\n" +
				"  remedy: kaz cluster doctor prod --fix"}},
		"corrupt": {func(f *Facts) { f.Members[1].Alarms = []string{"CORRUPT"} }, true, []string{
			"✘ alarm CORRUPT: the database of member prod-cp-1 differs", "kaz cluster repair prod cp-1"}},
		"nearly full": {func(f *Facts) { f.Members[1].Size, f.Members[1].Quota = 1800<<20, 0 }, false, []string{
			"⚠ database: that of member prod-cp-1 is nearly full: 1800 MiB of 2048 MiB, 40 MiB in use"}},
		"full disk": {func(f *Facts) {
			f.Members[1].Disks = []Disk{{EtcdDisk, 64 << 30, 1 << 30}, {"/", 64 << 30, 60 << 30}}
		}, true, []string{
			"✘ disk: the disk of etcd of member prod-cp-1 is full, so the member cannot write: 1024 MiB of 65536 MiB free",
			"kaz cluster repair prod cp-1; for a greater disk"}},
		"nearly full disk": {func(f *Facts) { f.Members[1].Disks = []Disk{{EtcdDisk, 64 << 30, 9 << 30}} }, false, []string{
			"⚠ disk: the disk of etcd of member prod-cp-1 is nearly full: 9216 MiB of 65536 MiB free"}},
		"disk without room for a defragmentation": {func(f *Facts) {
			f.Members[1].InUse, f.Members[1].Disks = 4<<30, []Disk{{EtcdDisk, 16 << 30, 3 << 30}}
		}, false, []string{"⚠ disk: the disk of etcd of member prod-cp-1 has less room than its database has in use, 4096 MiB"}},
		"disk that is not mounted": {func(f *Facts) { f.Members[1].Disks = []Disk{{Path: EtcdDisk}} }, true, []string{
			"✘ disk: the disk of etcd of member prod-cp-1 is not mounted at /var/lib/etcddisk"}},
		"disk that cannot be read": {func(f *Facts) { f.Members[1].DiskFault = "denied" }, false, []string{
			"⚠ disk: the disks of member prod-cp-1 cannot be read: denied"}},
		"full disk without an API server": {func(f *Facts) {
			f.Silent, f.Members[1].Disks = "timeout", []Disk{{EtcdDisk, 64 << 30, 0}}
		}, true, []string{"✘ disk: the disk of etcd of member prod-cp-1 is full"}},
		"pressure": {func(f *Facts) { f.Machines[0].Pressure = []string{"DiskPressure", "PIDPressure"} }, false, []string{
			"⚠ nodes: they evict pods: prod-general000000 (DiskPressure, PIDPressure)"}},
		"learner": {func(f *Facts) { f.Members[1].Role = "learner" }, false, []string{"⚠ etcd: member prod-cp-1 is a learner",
			"kaz cluster repair prod cp-1"}},
		"member without a machine": {func(f *Facts) { f.Members[1].Power = "" }, false, []string{"⚠ etcd: member prod-cp-1 has no machine",
			"⚠ nodes: nodes without a machine: prod-cp-1"}},
		"machine without a member": {func(f *Facts) { f.Members[1].Role, f.Members[1].Healthy = "", false }, false, []string{
			"⚠ etcd: machine prod-cp-1 is no member of etcd"}},
		"member that never started": {func(f *Facts) { f.Members = append(f.Members, Member{Role: "learner", ID: "b2"}) }, false, []string{
			"⚠ etcd: member b2 (\"\") was added", "etcdctl member remove b2"}},
		"machine that is no node": {func(f *Facts) { f.Machines[0].Node = false }, false, []string{
			"⚠ nodes: machines that are no nodes: prod-general000000"}},
		"certificates": {func(f *Facts) {
			f.Certificates = []Certificate{{"etcd of prod-cp-0", now.AddDate(0, 0, 10)}, {"kubeconfig of kubernetes-admin", now.AddDate(0, 0, -1)}}
		}, true, []string{"⚠ certificates: etcd of prod-cp-0: expires 2026-01-12\n  remedy: kaz cluster rotate prod",
			"✘ certificates: kubeconfig of kubernetes-admin: expired 2026-01-01\n  remedy: kaz cluster kubeconfig prod"}},
		"no backup":  {func(f *Facts) { f.Backup = Backup{} }, false, []string{"⚠ backup: there is none\n  remedy: kaz cluster backup prod"}},
		"old backup": {func(f *Facts) { f.Backup.At = now.Add(-4 * time.Hour) }, false, []string{"⚠ backup: the newest one is of 2026-01-02T08:00:00Z"}},
		"no right to read secrets": {func(f *Facts) { f.Secrets = Secrets{Fault: "403"} }, false, []string{
			"⚠ secrets: they cannot be read: 403"}},
		"join token that is gone": {func(f *Facts) { f.Secrets.Taken = false }, false, []string{
			"⚠ join token: the API server does not take abcdef", "kaz cluster rotate prod --token"}},
		"join token that ended": {func(f *Facts) { f.Secrets.Ends = now.Add(-time.Minute) }, false, []string{
			"⚠ join token: the API server does not take abcdef"}},
		"join token that nobody renews": {func(f *Facts) { f.Secrets.Ends = now.Add(19 * time.Hour) }, false, []string{
			"⚠ join token: no member renews abcdef, which ends 2026-01-03T07:00:00Z"}},
		"keys of an aborted rotation": {func(f *Facts) { f.Secrets.Former = 1 }, false, []string{
			"⚠ key of service accounts: a rotation was aborted", "kaz cluster rotate prod --service-account begins anew"}},
		"former keys": {func(f *Facts) { f.Secrets.Former, f.Secrets.Complete = 1, now.AddDate(0, 0, -4) }, false, []string{
			"⚠ key of service accounts: former keys are accepted, and another one signs since 2025-12-29T12:00:00Z",
			"kaz cluster rotate prod --service-account --finish"}},
		"Secrets in plain text": {func(f *Facts) { f.Secrets.EncryptionKey = "identity" }, false, []string{
			`⚠ encryption of Secrets: members write Secrets with the key "identity"`, "remedy: kaz cluster rotate prod --encryption"}},
		"certificate authority that ends": {func(f *Facts) { f.Secrets.AuthorityEnds = now.AddDate(0, 11, 0) }, false, []string{
			"⚠ certificate authorities: the first one ends 2026-12-02, with all certificates of it\n  remedy: kaz cluster rotate prod --authorities"}},
		"change": {func(f *Facts) { f.Change, f.Deployment = "to version 1.37.0", "Failed" }, false, []string{
			"⚠ change: a change has begun and not ended: to version 1.37.0\n  remedy: kaz cluster resume prod",
			"⚠ deployment: the last deployment is failed"}},
	} {
		f := well()
		test.change(&f)
		found := Check(f)
		if found.Stop() != test.stop {
			t.Errorf("%s: stop %v\n%v", name, found.Stop(), found)
		}
		for _, want := range test.want {
			if !strings.Contains(found.Error(), want) {
				t.Errorf("%s: got\n%v\nwant %s", name, found, want)
			}
		}
	}
}
