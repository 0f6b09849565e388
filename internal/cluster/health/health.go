// Package health judges the state of a cluster. It finds out whether etcd has a majority and room, which machines and nodes
// are missing, and which certificates end. Layer L1: pure.
package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kaz/internal/cluster/finding"
	"kaz/internal/cluster/naming"
)

// Facts are what there is of a cluster.
type Facts struct {
	Cluster string
	Now     time.Time
	// Silent says why the API server does not answer, "" if it does. Then nothing is known of nodes and of etcd.
	Silent string
	// EtcdFault says why the members of etcd cannot be read, "" if they can.
	EtcdFault    string
	Members      []Member
	Machines     []Machine // of pools
	Certificates []Certificate
	Backup       Backup
	// Change is the change that has begun and not ended, "" for none.
	Change string
	// Deployment is the state of the last deployment.
	Deployment string
	Secrets    Secrets
}

// Secrets are the secrets of the key vault that need care.
type Secrets struct {
	// Fault says why they cannot be read.
	Fault string `json:"fault,omitempty"`
	// Token is the ID of the join token, which is no secret, and Taken says that the API server takes the token.
	Token string `json:"joinToken,omitempty"`
	Taken bool   `json:"joinTokenTaken"`
	// Ends is when the token ends, the zero time for never.
	Ends time.Time `json:"joinTokenEnds,omitzero"`
	// Former is the number of keys of service accounts that are accepted and do not sign.
	Former int `json:"formerKeys,omitempty"`
	// Complete is since when every member signs with the same key, the zero time if it is not known.
	Complete time.Time `json:"keysComplete,omitzero"`
	// EncryptionKey is the name of the key with which members encrypt Secrets, "identity" for none. A name has the day of the key.
	EncryptionKey string `json:"encryptionKey,omitempty"`
	// Encrypted is since when all Secrets are written with that key, the zero time if it is not known.
	Encrypted time.Time `json:"encryptedSince,omitzero"`
	// AuthorityEnds is when the first certificate authority ends that issues certificates.
	AuthorityEnds time.Time `json:"authorityEnds,omitzero"`
}

// Member is a member of the control plane. What is gone of it has the zero value.
type Member struct {
	Machine
	APIServer bool `json:"apiServer"`
	// Role is leader, voter or learner, "" if it is no member of etcd.
	Role string `json:"role,omitempty"`
	// ID is the id of the member in etcd.
	ID string `json:"id,omitempty"`
	// Healthy says that the member answers and knows a leader.
	Healthy bool `json:"healthy"`
	// Fault says why it does not answer.
	Fault string `json:"fault,omitempty"`
	// Alarms are NOSPACE and CORRUPT.
	Alarms []string `json:"alarms,omitempty"`
	// Size, InUse and Quota are bytes of the database.
	Size  int64 `json:"size,omitempty"`
	InUse int64 `json:"inUse,omitempty"`
	Quota int64 `json:"quota,omitempty"`
	// Disks are those of the machine, none if it does not run. DiskFault says why they cannot be read.
	Disks     []Disk `json:"disks,omitempty"`
	DiskFault string `json:"diskFault,omitempty"`
}

// Machine is a machine and its node.
type Machine struct {
	Name string `json:"name"`
	// Power is the power state of the machine, such as "running". It is "unknown" if Azure does not tell the state, and "" if
	// there is no machine.
	Power string `json:"power,omitempty"`
	Node  bool   `json:"node"`
	Ready bool   `json:"ready"`
	// Pressure is what the node is short of, such as DiskPressure.
	Pressure []string `json:"pressure,omitempty"`
}

// Certificate is a certificate with its end.
type Certificate struct {
	Name    string    `json:"name"`
	Expires time.Time `json:"expires"`
}

// Backup is the newest backup of etcd.
type Backup struct {
	Name string    `json:"name,omitempty"`
	At   time.Time `json:"at,omitzero"`
	// Fault says why the backups cannot be read.
	Fault string `json:"fault,omitempty"`
}

const (
	// nearEnd is when a certificate counts as near its end. Machines renew theirs 30 days before.
	nearEnd = 20 * 24 * time.Hour
	// oldBackup is when a backup counts as old. Machines save one every hour.
	oldBackup = 3 * time.Hour
	// renewal is how long a join token is valid at least, if a member renews it: it does every 12 hours, for 36 hours.
	renewal = 20 * time.Hour
	// keysRest is how long former keys of service accounts are accepted before they count as forgotten.
	keysRest = 3 * 24 * time.Hour
	// authorityRest is how long before the end of a certificate authority its replacement is to begin.
	authorityRest = 365 * 24 * time.Hour
	// full is the part of the quota, in percent, from which on a database counts as nearly full.
	full = 80
	// DefaultQuota is the quota of an etcd that does not tell its quota.
	DefaultQuota = 2 << 30
)

// Check returns what is wrong.
func Check(f Facts) finding.List {
	c := &checker{Facts: f}
	c.members()
	if f.Silent == "" && f.EtcdFault == "" {
		c.majority()
		for _, m := range f.Members {
			c.etcd(m)
		}
	}
	for _, m := range f.Members {
		c.disks(m)
	}
	c.nodes()
	c.certificates()
	c.backup()
	c.secrets()
	c.authorities()
	c.encryption()
	if f.Change != "" {
		c.found.Warn("change", c.command("resume")+" goes on, "+c.command("abort")+" leaves the cluster as it is",
			"a change has begun and not ended: %s", f.Change)
	}
	if f.Deployment == "Failed" || f.Deployment == "Canceled" {
		c.found.Warn("deployment", "deploy again: the same command goes on where it stopped", "the last deployment is %s",
			strings.ToLower(f.Deployment))
	}
	return c.found
}

type checker struct {
	Facts
	found finding.List
}

// command is a command of kaz about the cluster.
func (c *checker) command(verb string, more ...string) string {
	return strings.Join(append([]string{"kaz cluster", verb, c.Cluster}, more...), " ")
}

// unit is the name of a member as commands take it, such as cp-1.
func (c *checker) unit(m Member) string { return strings.TrimPrefix(m.Name, c.Cluster+"-") }

// members checks whether the control plane answers, and the machines of its members.
func (c *checker) members() {
	restore := "if the machines of the others are lost, bring the newest backup back with " + c.command("restore")
	if c.Silent != "" {
		running := 0
		var states []string
		for _, m := range c.Members {
			if m.Power == "running" || m.Power == "unknown" {
				running++
			}
			states = append(states, m.Name+" "+orGone(m.Power))
		}
		remedy := "see the consoles of the machines; if the control plane is lost, bring the newest backup back with " +
			c.command("restore")
		if 2*running <= len(c.Members) {
			remedy = "start the machines that do not run: etcd needs a majority of its members; " + restore
		}
		c.found.Add("API server", remedy, "it does not answer: %s; machines: %s", c.Silent, strings.Join(states, ", "))
	}
	if c.EtcdFault != "" {
		c.found.Add("etcd", "check the right to forward ports to pods of kube-system, and the right to read secrets of the key vault",
			"its members cannot be read: %s", c.EtcdFault)
	}
	for _, m := range c.Members {
		if m.Power != "" && m.Power != "running" && m.Power != "unknown" {
			c.found.Warn("machines", "start it, or replace it with "+c.command("repair", c.unit(m)), "%s is %s", m.Name, m.Power)
		}
	}
}

func orGone(power string) string {
	if power == "" {
		return "is gone"
	}
	return "is " + power
}

// majority checks whether enough voters of etcd answer.
func (c *checker) majority() {
	voters, healthy := 0, 0
	for _, m := range c.Members {
		if m.Role == "leader" || m.Role == "voter" {
			voters++
			if m.Healthy {
				healthy++
			}
		}
	}
	if 2*healthy <= voters {
		c.found.Add("etcd", "start the members that do not answer; if their machines are lost, bring the newest backup back with "+
			c.command("restore"),
			"%d of %d members answer, which is no majority: etcd takes no writes", healthy, voters)
		return
	}
	if spare := healthy - voters/2 - 1; healthy < voters {
		c.found.Warn("etcd", "replace the members that do not answer with "+c.command("repair", "MEMBER"),
			"%d of %d members answer; etcd can lose %d more", healthy, voters, spare)
	}
}

// etcd checks one member of etcd.
func (c *checker) etcd(m Member) {
	_, _, ours := naming.MemberSlot(c.unit(m))
	switch {
	case m.Role != "" && !ours:
		c.found.Warn("etcd", "remove it on a member: etcdctl member remove "+m.ID,
			"member %s (%q) was added and is no machine of the cluster: its machine never started etcd", m.ID, m.Name)
		return
	case m.Role != "" && m.Power == "":
		c.found.Warn("etcd", c.command("repair")+" removes it and makes a new one", "member %s has no machine", m.Name)
	case m.Role == "":
		c.found.Warn("etcd", "wait if it boots; if not, replace it with "+c.command("repair", c.unit(m)),
			"machine %s is no member of etcd", m.Name)
		return
	case m.Role == "learner":
		c.found.Warn("etcd", "wait if it joins; if its join stopped, replace it with "+c.command("repair", c.unit(m)),
			"member %s is a learner and has no vote", m.Name)
	case !m.Healthy && m.Fault != "":
		c.found.Warn("etcd", "see its console, or replace it with "+c.command("repair", c.unit(m)), "member %s does not answer: %s",
			m.Name, m.Fault)
	}
	c.database(m)
}

// database checks the alarms and the size of a member's database.
func (c *checker) database(m Member) {
	for _, alarm := range m.Alarms {
		switch alarm {
		case "NOSPACE":
			c.found.Add("alarm NOSPACE", c.command("doctor", "--fix")+" gives space back and ends the alarm",
				"the database of member %s has reached its quota: etcd takes no writes (%s)", m.Name, m.Room())
		case "CORRUPT":
			c.found.Add("alarm CORRUPT", "replace the member with "+c.command("repair", c.unit(m))+"; if the API server answers no "+
				"request, remove it on another member: etcdctl member remove "+m.ID+", then etcdctl alarm disarm",
				"the database of member %s differs from the others: etcd answers no requests", m.Name)
		}
	}
	if quota := m.quota(); len(m.Alarms) == 0 && m.Size*100 >= quota*full {
		c.found.Warn("database", c.command("doctor", "--fix")+" gives space back that is not in use; delete objects that nothing needs",
			"that of member %s is nearly full: %s", m.Name, m.Room())
	}
}

func (m Member) quota() int64 {
	if m.Quota > 0 {
		return m.Quota
	}
	return DefaultQuota
}

// Room is the size of the database and its quota, for people.
func (m Member) Room() string {
	return fmt.Sprintf("%d MiB of %d MiB, %d MiB in use", m.Size/mebi, m.quota()/mebi, m.InUse/mebi)
}

// nodes checks that machines are nodes, and that nodes are ready and have machines.
func (c *checker) nodes() {
	if c.Silent != "" {
		return
	}
	all := slices.Clone(c.Machines)
	for _, m := range c.Members {
		if _, _, ours := naming.MemberSlot(c.unit(m)); ours {
			all = append(all, m.Machine)
		}
	}
	c.pressure(all)
	var unready, missing, orphans []string
	for _, m := range all {
		switch {
		case m.Power != "" && !m.Node:
			missing = append(missing, m.Name)
		case m.Power == "" && m.Node:
			orphans = append(orphans, m.Name)
		case m.Node && !m.Ready:
			unready = append(unready, m.Name)
		}
	}
	for _, one := range []struct {
		names           []string
		message, remedy string
	}{
		{unready, "not ready: %s", "kubectl describe node, and the console of the machine"},
		{missing, "machines that are no nodes: %s", "wait if they boot; the console of a machine names the phase that failed"},
		{orphans, "nodes without a machine: %s", "kubectl delete node; for members " + c.command("repair")},
	} {
		if len(one.names) > 0 {
			slices.Sort(one.names)
			c.found.Warn("nodes", one.remedy, one.message, strings.Join(one.names, ", "))
		}
	}
}

// certificates checks the ends of certificates.
func (c *checker) certificates() {
	for _, one := range c.Certificates {
		remedy := c.command("rotate") + "; machines renew their certificates themselves: systemctl status kaz-renew.timer"
		if strings.HasPrefix(one.Name, "kubeconfig") {
			remedy = c.command("kubeconfig") + " makes a new one"
		}
		switch left := one.Expires.Sub(c.Now); {
		case left <= 0:
			c.found.Add("certificates", remedy, "%s: expired %s", one.Name, one.Expires.UTC().Format(time.DateOnly))
		case left < nearEnd:
			c.found.Warn("certificates", remedy, "%s: expires %s", one.Name, one.Expires.UTC().Format(time.DateOnly))
		}
	}
}

// backup checks that etcd is saved.
func (c *checker) backup() {
	remedy := c.command("backup") + "; the leader saves one every hour: systemctl status kaz-backup.timer"
	switch b := c.Backup; {
	case b.Fault != "":
		c.found.Warn("backup", "check the right to read blobs of the cluster's storage account", "backups cannot be read: %s", b.Fault)
	case b.Name == "":
		c.found.Warn("backup", remedy, "there is none")
	case !b.At.IsZero() && c.Now.Sub(b.At) > oldBackup:
		c.found.Warn("backup", remedy, "the newest one is of %s: %s", b.At.UTC().Format(time.RFC3339), b.Name)
	}
}

// authorities checks that there is time to replace the certificate authorities, which takes clients outside of the cluster, too.
func (c *checker) authorities() {
	if ends := c.Secrets.AuthorityEnds; !ends.IsZero() && ends.Sub(c.Now) < authorityRest {
		c.found.Warn("certificate authorities", c.command("rotate", "--authorities"), "the first one ends %s, with all certificates of it",
			ends.UTC().Format(time.DateOnly))
	}
}

// encryption checks that all Secrets are encrypted in etcd, and with the same key.
func (c *checker) encryption() {
	s := c.Secrets
	if s.EncryptionKey == "" || !s.Encrypted.IsZero() || c.Change != "" {
		return
	}
	c.found.Warn("encryption of Secrets", c.command("rotate", "--encryption"),
		"members write Secrets with the key %q, and not all Secrets are known to be written with it; the key identity encrypts nothing",
		s.EncryptionKey)
}

// secrets checks that new nodes can join, and that no rotation of keys was left.
func (c *checker) secrets() {
	timer := "systemctl status kaz-join-token.timer on the members"
	switch s := c.Secrets; {
	case s.Fault != "":
		c.found.Warn("secrets", "check the right to read secrets of the key vault", "they cannot be read: %s", s.Fault)
	case s.Token != "" && (!s.Taken || !s.Ends.IsZero() && !s.Ends.After(c.Now)):
		c.found.Warn("join token", "systemctl start kaz-join-token on a member makes it; "+c.command("rotate", "--token")+
			" makes a new one", "the API server does not take %s, the one of the key vault: no further node can join", s.Token)
	case !s.Ends.IsZero() && s.Ends.Sub(c.Now) < renewal:
		c.found.Warn("join token", timer, "no member renews %s, which ends %s: later no further node can join", s.Token,
			s.Ends.UTC().Format(time.RFC3339))
	}
	switch s := c.Secrets; {
	case s.Former == 0:
	case s.Complete.IsZero() && c.Change == "":
		c.found.Warn("key of service accounts", c.command("rotate", "--service-account")+" begins anew",
			"a rotation was aborted: members may sign with different keys, which all accept")
	case !s.Complete.IsZero() && c.Now.Sub(s.Complete) > keysRest:
		c.found.Warn("key of service accounts", c.command("rotate", "--service-account", "--finish"),
			"former keys are accepted, and another one signs since %s", s.Complete.UTC().Format(time.RFC3339))
	}
}
