// Package poolnode describes the nodes of a pool of kaz cluster: their labels, taints and number of pods, and what kubelet keeps of a
// machine. The boot files give it to kubelet, the tags of a scale set give it to the autoscaler, which needs it for a pool without nodes.
// All of them use this description, so that the autoscaler's template and the node are alike. Layer L1: pure.
package poolnode

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kaz/internal/azure"
)

// The labels that kaz sets, and the tags of a scale set with their values.
const (
	PoolLabel     = "kaz/pool"
	RevisionLabel = "kaz/revision"
	PoolTag       = "kaz_pool"
	RevisionTag   = "kaz_revision"
)

// RoleTag is the tag of a machine with its role in the cluster. That of a member of the control plane is [RoleOfMember].
const (
	RoleTag      = "kaz_role"
	RoleOfMember = "control-plane"
)

// BootExtension is the name of the extension that waits until a machine has joined the cluster. It fails if the machine does not.
const BootExtension = "bootstrap"

// TagPrefix begins the names of all tags that describe the nodes of a scale set for cluster-autoscaler.
const TagPrefix = "k8s.io_cluster-autoscaler_node-template_"

// Node is what a node of a pool registers with.
type Node struct {
	Pool, Revision string
	// Given are the labels of the definition.
	Given  map[string]string
	Taints []corev1.Taint
	// Pods is the greatest number of pods.
	Pods int
}

// Labels are all labels with which kubelet registers the node, beside those that kubelet itself knows.
func (n Node) Labels() map[string]string {
	all := map[string]string{}
	maps.Copy(all, n.Given)
	all[PoolLabel], all[RevisionLabel] = n.Pool, n.Revision
	return all
}

// NodeLabels are the labels as the flag --node-labels of kubelet takes them.
func (n Node) NodeLabels() string {
	var text []string
	for _, key := range slices.Sorted(maps.Keys(n.Labels())) {
		text = append(text, key+"="+n.Labels()[key])
	}
	return strings.Join(text, ",")
}

// ReadTaint reads a taint as a definition has it: KEY=VALUE:EFFECT.
func ReadTaint(text string) corev1.Taint {
	what, effect, _ := strings.Cut(text, ":")
	key, value, _ := strings.Cut(what, "=")
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
}

// Tags are the tags of a scale set that describe its nodes for the autoscaler. The tags of pool and revision have the other labels.
func (n Node) Tags() map[string]string {
	tags := map[string]string{TagPrefix + "resources_" + string(corev1.ResourcePods): fmt.Sprint(n.Pods)}
	for key, value := range n.Given {
		tags[TagPrefix+"label_"+Encode(key)] = value
	}
	for _, t := range n.Taints {
		tags[TagPrefix+"taint_"+Encode(t.Key)] = t.Value + ":" + string(t.Effect)
	}
	return tags
}

// Describes reports whether a tag of a scale set is one of [Node.Tags]. Other tags for the autoscaler are those of people.
func Describes(tag string) bool {
	return strings.HasPrefix(tag, TagPrefix+"label_") || strings.HasPrefix(tag, TagPrefix+"taint_") ||
		tag == TagPrefix+"resources_"+string(corev1.ResourcePods)
}

// Own are the labels that kaz sets, from the tags of a scale set. It is nil for a scale set that kaz cluster did not make: its nodes are
// not known to have these labels, and may have others that are not in tags.
func Own(tags azure.Tags) map[string]string {
	pool, made := tags.Get(PoolTag)
	if !made {
		return nil
	}
	all := map[string]string{PoolLabel: pool}
	if revision, has := tags.Get(RevisionTag); has {
		all[RevisionLabel] = revision
	}
	return all
}

// Encode is the key of a label, taint or resource in the name of a tag, where _ stands for / and ~2 for _.
func Encode(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "_", "~2"), "/", "_")
}

// Decode is the key of a label, taint or resource that is encoded in the name of a tag.
func Decode(encoded string) string {
	return strings.ReplaceAll(strings.ReplaceAll(encoded, "_", "/"), "~2", "_")
}

// What kubelet keeps free by default, as the configuration of kaz' nodes sets nothing else: memory.available and nodefs.available of its
// hard eviction thresholds. Nothing is reserved for system and kubelet.
const (
	evictionMemory  = 100 << 20
	evictionStorage = 10 // per cent
)

// Allocatable is what pods get of the capacity of a node.
func Allocatable(capacity corev1.ResourceList) corev1.ResourceList {
	all := capacity.DeepCopy()
	if memory, has := all[corev1.ResourceMemory]; has {
		all[corev1.ResourceMemory] = *resource.NewQuantity(max(memory.Value()-evictionMemory, 0), resource.BinarySI)
	}
	if storage, has := all[corev1.ResourceEphemeralStorage]; has {
		all[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(storage.Value()-storage.Value()*evictionStorage/100, resource.BinarySI)
	}
	return all
}
