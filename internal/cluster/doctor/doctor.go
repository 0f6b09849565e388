// Package doctor reads how a cluster is, outside and inside, and gives its etcd room again. Layer L3.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kaz/internal/cluster/engine"
	"kaz/internal/cluster/finding"
	"kaz/internal/cluster/health"
	"kaz/internal/cluster/inspect"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/record"
	"kaz/internal/cluster/workload"
)

// Etcd is the etcd of a cluster.
type Etcd interface {
	// Survey reads the members, also without a majority.
	Survey(ctx context.Context) ([]inspect.EtcdMember, error)
	// Save stores a backup and returns where it is.
	Save(ctx context.Context) (string, error)
	// Compact forgets old revisions of objects.
	Compact(ctx context.Context) error
	// Defragment gives the space back that the database of a member does not use.
	Defragment(ctx context.Context, member string) error
	// Disarm ends the alarms NOSPACE.
	Disarm(ctx context.Context) error
}

// Doctor reads how a cluster is.
type Doctor struct {
	*engine.Engine
	Etcd Etcd
	// Certificates are certificates with their ends that the caller knows, such as those of the kubeconfig.
	Certificates []health.Certificate
}

// Report is how a cluster is.
type Report struct {
	Cluster string `json:"cluster"`
	// Healthy says that no finding is more than a warning.
	Healthy      bool                 `json:"healthy"`
	Members      []health.Member      `json:"members"`
	Nodes        []health.Machine     `json:"nodes"`
	Certificates []health.Certificate `json:"certificates"`
	Backup       health.Backup        `json:"backup"`
	Secrets      health.Secrets       `json:"secrets"`
	Findings     finding.List         `json:"findings"`
}

// mostSilent is how long an API server may take to answer before it counts as silent.
const mostSilent = 20 * time.Second

// Examine reads how a cluster is. It writes nothing.
func (d Doctor) Examine(ctx context.Context, n naming.Names) (Report, error) {
	f, err := d.facts(ctx, n)
	if err != nil {
		return Report{}, err
	}
	r := Report{Cluster: n.Cluster, Members: f.Members, Nodes: f.Machines, Certificates: f.Certificates, Backup: f.Backup,
		Secrets: f.Secrets}
	r.Findings = health.Check(f)
	r.Healthy = !r.Findings.Stop()
	return r, ctx.Err()
}

func (d Doctor) facts(ctx context.Context, n naming.Names) (health.Facts, error) {
	f := health.Facts{Cluster: n.Cluster, Now: d.Clock(), Certificates: d.Certificates}
	status, err := d.Status(ctx, n)
	if err != nil {
		return f, err
	}
	if status.State == record.Absent {
		return f, fmt.Errorf("cluster %s is not deployed", n.Cluster)
	}
	f.Change, f.Deployment = status.Change, status.State
	c := &found{members: map[string]*health.Member{}, pools: map[string]*health.Machine{}, names: n}
	if err := d.machines(ctx, c); err != nil {
		return f, err
	}
	nodes, err := d.nodes(ctx)
	if err != nil {
		f.Silent = err.Error()
	}
	for name, node := range nodes {
		c.addNode(name, node)
	}
	if f.Silent == "" {
		members, err := d.Etcd.Survey(ctx)
		if err != nil {
			f.EtcdFault = err.Error()
		}
		for _, m := range members {
			c.addEtcd(m)
			if !m.Expires.IsZero() {
				f.Certificates = append(f.Certificates, health.Certificate{Name: "etcd of " + m.Name, Expires: m.Expires})
			}
		}
	}
	d.disks(ctx, c)
	f.Backup = d.backup(ctx)
	if f.Silent == "" {
		f.Secrets = d.Secrets(ctx, n)
		if status.OwnKeys {
			f.Secrets.EncryptionKey = ""
		}
	}
	f.Members, f.Machines = c.sorted()
	return f, nil
}

func (d Doctor) nodes(ctx context.Context) (map[string]workload.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, mostSilent)
	defer cancel()
	return d.Workload.Nodes(ctx)
}

// backup reads the newest backup. Its name has its time: etcd/20260102T030405Z-1234.db.
func (d Doctor) backup(ctx context.Context) health.Backup {
	if d.Backups == nil {
		return health.Backup{Fault: "no storage account is known"}
	}
	name, err := d.Backups.Latest(ctx)
	if err != nil {
		return health.Backup{Fault: err.Error()}
	}
	b := health.Backup{Name: name}
	text, _, _ := strings.Cut(strings.TrimPrefix(name, "etcd/"), "-")
	if at, err := time.Parse("20060102T150405Z", text); err == nil {
		b.At = at
	}
	return b
}

// found collects what is there, by the names of machines.
type found struct {
	names   naming.Names
	members map[string]*health.Member
	pools   map[string]*health.Machine
}

// machine is the machine of a name, which is made if it is not known yet.
func (c *found) machine(name string) *health.Machine {
	if _, _, member := naming.MemberSlot(strings.TrimPrefix(name, c.names.Cluster+"-")); member {
		return &c.member(name).Machine
	}
	if c.pools[name] == nil {
		c.pools[name] = &health.Machine{Name: name}
	}
	return c.pools[name]
}

func (c *found) member(name string) *health.Member {
	if c.members[name] == nil {
		c.members[name] = &health.Member{Machine: health.Machine{Name: name}}
	}
	return c.members[name]
}

func (c *found) addNode(name string, node workload.Node) {
	m := c.machine(name)
	m.Node, m.Ready, m.Pressure = true, node.Ready, node.Pressure
	if one := c.members[name]; one != nil {
		one.APIServer = node.APIServer
	}
}

func (c *found) addEtcd(m inspect.EtcdMember) {
	one := c.member(cmp.Or(m.Name, m.ID)) // a member that has not started has no name
	one.Name, one.Role = m.Name, "voter"
	switch {
	case m.Learner:
		one.Role = "learner"
	case m.Leader:
		one.Role = "leader"
	}
	one.ID, one.Healthy, one.Fault, one.Alarms = m.ID, m.Healthy, m.Problem, m.Alarms
	one.Size, one.InUse, one.Quota = m.Size, m.InUse, m.Quota
}

func (c *found) sorted() (members []health.Member, pools []health.Machine) {
	for _, m := range c.members {
		members = append(members, *m)
	}
	for _, m := range c.pools {
		pools = append(pools, *m)
	}
	slices.SortFunc(members, func(a, b health.Member) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	slices.SortFunc(pools, func(a, b health.Machine) int { return cmp.Compare(a.Name, b.Name) })
	return members, pools
}

// Fix frees room in etcd. It makes a backup, and defragments each member, the leader last. If the database has reached its
// quota, Fix also removes old revisions before, and ends the alarm after. It returns false if there is nothing to do. No other process
// changes the cluster meanwhile: a member that is defragmented does not answer.
func (d Doctor) Fix(ctx context.Context, n naming.Names) (did bool, err error) {
	err = d.Alone(ctx, func(ctx context.Context) error {
		did, err = d.fix(ctx, n)
		return err
	})
	return did, err
}

func (d Doctor) fix(ctx context.Context, n naming.Names) (bool, error) {
	members, err := d.Etcd.Survey(ctx)
	if err != nil {
		return false, err
	}
	if err := safe(members); err != nil {
		return false, err
	}
	full := slices.ContainsFunc(members, noSpace)
	if !full && !slices.ContainsFunc(members, wasteful) {
		return false, nil
	}
	if err := d.roomFor(ctx, n, members); err != nil {
		return false, err
	}
	at, err := d.Etcd.Save(ctx)
	if err != nil {
		return false, err
	}
	d.Sayf("saved as %s", at)
	if full {
		d.Sayf("forget old revisions")
		if err := d.Etcd.Compact(ctx); err != nil {
			return false, fmt.Errorf("compact etcd: %w", err)
		}
	}
	slices.SortStableFunc(members, func(a, b inspect.EtcdMember) int { return rank(a.Leader) - rank(b.Leader) })
	for _, m := range members {
		d.Sayf("defragment %s", m.Name)
		if err := d.Etcd.Defragment(ctx, m.Name); err != nil {
			return false, err
		}
	}
	if full {
		d.Sayf("end the alarm NOSPACE")
		if err := d.Etcd.Disarm(ctx); err != nil {
			return false, fmt.Errorf("alarm NOSPACE: %w", err)
		}
	}
	return true, nil
}

func noSpace(m inspect.EtcdMember) bool { return slices.Contains(m.Alarms, "NOSPACE") }

// wasteful reports whether a defragmentation would give back half of a database, or more.
func wasteful(m inspect.EtcdMember) bool {
	const least = 16 << 20
	return m.Size > least && 2*m.InUse <= m.Size
}

// safe refuses a defragmentation if a member does not answer. The member that is defragmented does not answer either.
func safe(members []inspect.EtcdMember) error {
	for _, m := range members {
		switch {
		case slices.Contains(m.Alarms, "CORRUPT"):
			return fmt.Errorf("the database of member %s is corrupt: replace the member first", m.Name)
		case !m.Healthy:
			return fmt.Errorf("member %s of etcd does not answer: replace it first: %s", cmp.Or(m.Name, m.ID), m.Problem)
		}
	}
	if len(members) == 0 {
		return errors.New("etcd has no member")
	}
	return nil
}

func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}
