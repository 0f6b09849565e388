package clustercommand

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"kaz/internal/cluster/doctor"
	"kaz/internal/cluster/engine"
	"kaz/internal/cluster/health"
	"kaz/internal/cluster/record"
)

func doctorCommand() *cobra.Command {
	var f changeFlags
	var fix bool
	command := placeCommand(&cobra.Command{
		Use:   "doctor NAME",
		Short: "Find out what is wrong with a cluster",
		Long: `Reads the machines in Azure, the nodes, and the members of etcd, and says what is wrong and
what helps: a lost majority, members that do not answer, learners left over, members
without a machine and machines without a member, alarms and the size of the database,
nodes that are not ready, certificates and certificate authorities that end, old backups, an
open change, a join token with which no node can join, former keys of service accounts. A run
command on each member reads how full its disks are, and changes nothing.

--fix gives etcd room again. It saves etcd, defragments each member, the leader last, and
ends the alarm NOSPACE. With that alarm it also forgets old revisions of objects. Clients
then list what they watch anew. It changes nothing else.

Exit status 7: a finding marked ✘ needs an action.`,
		Example: `  kaz cluster doctor prod --subscription 00000000-0000-0000-0000-000000000001
  kaz cluster doctor prod --fix`,
	}, func(command *cobra.Command, e *engine.Engine, at record.Place) error {
		p, err := recorded(command, e, at)
		if err != nil {
			return err
		}
		config, err := f.connect(e, p.Definition.Cluster)
		if err != nil {
			return err
		}
		d := doctor.Doctor{Engine: e, Certificates: certificates(command.Context(), config)}
		d.Etcd, _ = e.Etcd.(doctor.Etcd)
		if fix {
			if did, err := d.Fix(command.Context(), p.Names); err != nil {
				return err
			} else if !did {
				e.Say("etcd has room: nothing to fix")
			}
		}
		r, err := d.Examine(command.Context(), p.Names)
		if err != nil {
			return err
		}
		if err := show(command, r, func(w io.Writer) error { return writeReport(w, r) }); err != nil {
			return err
		}
		if !r.Healthy {
			return changeFailed
		}
		return nil
	})
	f.defineKubernetes(command)
	f.defineUnlocked(command)
	command.Flags().BoolVar(&fix, "fix", false, "give etcd room again")
	return command
}

func writeReport(out io.Writer, r doctor.Report) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(w, "MEMBER\tMACHINE\tNODE\tAPI SERVER\tETCD\tDATABASE\tDISK OF ETCD"); err != nil {
		return err
	}
	for _, m := range r.Members {
		room := "-"
		if m.Size > 0 {
			room = m.Room()
		}
		disk := "-"
		for _, d := range m.Disks {
			if d.Path == health.EtcdDisk && d.Size > 0 {
				disk = d.Room()
			}
		}
		if _, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", orDash(m.Name), orDash(m.Power),
			ready(m.Node, m.Ready), ready(true, m.APIServer), roleOf(m), room, disk); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	ok := 0
	for _, n := range r.Nodes {
		if n.Ready {
			ok++
		}
	}
	last := "nothing is wrong"
	if len(r.Findings) > 0 {
		last = r.Findings.Error()
	}
	_, err := fmt.Fprintf(out, "nodes of pools: %d of %d ready\nnewest backup: %s\n%s\n", ok, len(r.Nodes), orDash(r.Backup.Name), last)
	return err
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func ready(there, ready bool) string {
	switch {
	case !there:
		return "-"
	case ready:
		return "ready"
	}
	return "not ready"
}

func roleOf(m health.Member) string {
	parts := append([]string{orDash(m.Role)}, m.Alarms...)
	if m.Role != "" && !m.Healthy {
		parts = append(parts, "does not answer")
	}
	return strings.Join(parts, ", ")
}

// certificates are the certificates that a kubeconfig has, and that of the API server that answers.
func certificates(ctx context.Context, config *rest.Config) []health.Certificate {
	var all []health.Certificate
	add := func(name string, c *x509.Certificate) {
		if c != nil {
			all = append(all, health.Certificate{Name: name, Expires: c.NotAfter})
		}
	}
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil || tlsConfig == nil {
		return nil
	}
	add("certificate authority of the cluster", first(config.CAData))
	add("kubeconfig of the administrator", first(config.CertData))
	server, err := url.Parse(config.Host)
	if err != nil {
		return all
	}
	const most = 10 * time.Second
	timed, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	connection, err := (&tls.Dialer{Config: tlsConfig}).DialContext(timed, "tcp", server.Host)
	if err != nil {
		return all // the doctor says that the API server does not answer
	}
	defer func() { _ = connection.Close() }()
	if c, ok := connection.(*tls.Conn); ok {
		add("API server", c.ConnectionState().PeerCertificates[0])
	}
	return all
}

// first is the first certificate of a text in PEM, nil for none.
func first(text []byte) *x509.Certificate {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return c
}
