package check

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"kaz/internal/azure/compute"
	"kaz/internal/plan/claim"
	"kaz/internal/plan/nodes"
)

const succeeded = "Succeeded"

// unfinished says what a provisioning state means, "" if the last operation succeeded.
func unfinished(state string) (string, State) {
	switch {
	case state == "" || strings.EqualFold(state, succeeded):
		return "", OK
	case strings.EqualFold(state, "Failed") || strings.EqualFold(state, "Canceled"):
		return fmt.Sprintf("Azure's last operation on it failed (provisioningState %s)", state), Problem
	}
	return fmt.Sprintf("Azure has not finished an operation on it (provisioningState %s)", state), Warning
}

func operations(f *Facts, l *list) {
	for _, o := range f.Operations {
		name := o.ID.Name()
		if o.ID.Is(compute.ScaleSetInstances) {
			name = nodes.MachineName(o.ID)
		}
		if why, state := unfinished(o.State); why != "" {
			mend := "az resource show --ids " + string(o.ID)
			if state == Problem {
				mend = "read its activity log: az monitor activity-log list --resource-id " + string(o.ID)
			}
			l.add(name, state, why+": "+string(o.ID), mend)
		}
	}
}

// lastEvents returns the newest warning about each object, by kind, namespace and name.
func (f *Facts) lastEvents() map[string]v1.Event {
	last := map[string]v1.Event{}
	for _, e := range f.Events {
		o := e.InvolvedObject
		key := o.Kind + "/" + o.Namespace + "/" + o.Name
		if before, ok := last[key]; !ok || when(e).After(when(before)) {
			last[key] = e
		}
	}
	return last
}

func when(e v1.Event) time.Time {
	if e.LastTimestamp.IsZero() {
		return e.EventTime.Time
	}
	return e.LastTimestamp.Time
}

// said returns what the newest warning about an object says, with a separator before it, "" for none.
func said(last map[string]v1.Event, kind, namespace, name string) string {
	e, ok := last[kind+"/"+namespace+"/"+name]
	if !ok {
		return ""
	}
	return "; the last message is " + e.Reason + ": " + strings.Join(strings.Fields(e.Message), " ")
}

// waits says for what claims and pods wait.
func waits(f *Facts, l *list) {
	last := f.lastEvents()
	classes := map[string]*storagev1.StorageClass{}
	for i, c := range f.Classes {
		classes[c.Name] = &f.Classes[i]
	}
	for i := range f.Claims {
		c := &f.Claims[i]
		age := f.age(c.CreationTimestamp.Time)
		if c.Status.Phase == v1.ClaimBound || age <= patience || c.DeletionTimestamp != nil {
			continue
		}
		u := claim.Explain(c, classes[claim.ClassName(c)], f.podsOf(c))
		state, why := Warning, fmt.Sprintf("the claim is %v old and waits for %s", age, u.Wait)
		if u.Problem != "" {
			state, why = Problem, u.Problem
		}
		if u.Ours || u.Problem == "" || classes[claim.ClassName(c)] == nil {
			l.add(c.Namespace+"/"+c.Name, state, why+said(last, "PersistentVolumeClaim", c.Namespace, c.Name),
				"kaz explain volume "+c.Namespace+"/"+c.Name)
		}
	}
	for i := range f.Pending {
		p := &f.Pending[i]
		age := f.age(p.CreationTimestamp.Time)
		if age <= patience || p.DeletionTimestamp != nil {
			continue
		}
		l.add(p.Namespace+"/"+p.Name, Warning, fmt.Sprintf("the pod is %v old and waits for %s%s", age, podWaits(p),
			said(last, "Pod", p.Namespace, p.Name)), "kubectl describe pod -n "+p.Namespace+" "+p.Name)
	}
}

// podsOf returns the pending pods that use a claim.
func (f *Facts) podsOf(c *v1.PersistentVolumeClaim) (names []string) {
	for _, p := range f.Pending {
		for _, v := range p.Spec.Volumes {
			if p.Namespace == c.Namespace && v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == c.Name {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

func podWaits(p *v1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			return "the scheduler: " + cmp.Or(strings.Join(strings.Fields(c.Message), " "), c.Reason)
		}
	}
	if p.Spec.NodeName == "" {
		return "the scheduler"
	}
	return "the kubelet of Node " + p.Spec.NodeName + " to mount its volumes and start it"
}
