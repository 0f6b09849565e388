// Package tag reads and makes the tags of what the planner writes: the configured ones, and those
// that say which Services and which cluster a public IP serves. Layer L1.
package tag

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/cluster"
)

// The tags by which a public IP, or a private link service, names what it serves; and their
// older names, which are read only.
const (
	Services    = key.TagServices
	Cluster     = key.TagCluster
	Label       = "k8s-azure-dns-label-service"
	LinkOwner   = "k8s-azure-owner-service"
	OldServices = "service"
	OldCluster  = "kubernetes-cluster-name"
	oldLabel    = "kubernetes-dns-label-service"
	Notes       = "kaz-" // starts the names of tags in which kaz notes something, of any cluster
)

// Wanted is the configured tags with own ones over them. Where system tags are
// configured, tags that are neither wanted nor system tags are dropped.
func Wanted(c cluster.Config, own, have azure.Tags) azure.Tags {
	if len(c.Tags)+len(own) == 0 && len(c.SystemTags) == 0 {
		return nil
	}
	tags := azure.Tags{}
	Add(tags, own)
	Add(tags, c.Tags)
	if len(c.SystemTags) > 0 {
		for name := range have {
			isOf := func(prefix string) bool { return cluster.HasPrefix(name, prefix) }
			if _, wanted := tags.Get(name); !wanted && !slices.ContainsFunc(c.SystemTags, isOf) {
				tags[name] = azure.DropTag
			}
		}
	}
	return tags
}

// WantedOfShared is Wanted for a load balancer or the security group. Without configured tags, all their tags
// stay; so do notes, which may belong to another cluster that shares the security group.
func WantedOfShared(c cluster.Config, notes, have azure.Tags) azure.Tags {
	switch {
	case len(c.Tags) == 0:
		c.SystemTags = nil
	case len(c.SystemTags) > 0:
		c.SystemTags = slices.Concat(c.SystemTags, []string{Notes})
	}
	return Wanted(c, notes, have)
}

// Add adds tags of names that are not there yet.
func Add(to, tags azure.Tags) {
	for name, value := range tags {
		if _, there := to.Get(name); !there {
			to[name] = value
		}
	}
}

// ServicesIn is what a public IP's tag names, in its order. Other software uses tags of these names too, so a tag that
// names no Service does not count.
func ServicesIn(tags azure.Tags) []string {
	text, _ := current(tags, Services, OldServices)
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	isKey := func(text string) bool { // NAMESPACE/NAME
		namespace, name, _ := strings.Cut(text, "/")
		return len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Label(name)) == 0
	}
	if !slices.ContainsFunc(names, isKey) {
		return nil
	}
	return names
}

// current is the value of a tag, or of the one with its older name.
func current(tags azure.Tags, name, older string) (string, bool) {
	if text, ok := tags.Get(name); ok {
		return text, ok
	}
	return tags.Get(older)
}

// ClusterIn is the name of the cluster to which a tag assigns a resource.
func ClusterIn(tags azure.Tags) (string, bool) { return current(tags, Cluster, OldCluster) }

// IsOfOther reports whether a tag assigns a resource to another cluster.
func IsOfOther(tags azure.Tags, clusterName string) bool {
	name, ok := ClusterIn(tags)
	return ok && !strings.EqualFold(name, clusterName)
}

// LabelOwner is the Service that has named a public IP in DNS, "" for none.
func LabelOwner(tags azure.Tags) string {
	name, _ := current(tags, Label, oldLabel)
	return strings.TrimSpace(name)
}

// DropLabel drops tags that name the owner of a DNS label.
func DropLabel(to, have azure.Tags) {
	for _, name := range []string{Label, oldLabel} {
		if _, there := have.Get(name); there {
			to[name] = azure.DropTag
		}
	}
}
