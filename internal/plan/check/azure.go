package check

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

const (
	// maxSkew is how far clocks may differ: logins refuse tokens that are signed beyond it.
	maxSkew = 5 * time.Minute
	// nearlyUsed is the part of a quota above which it counts as nearly used up.
	nearlyUsed = 0.9
)

func config(f *Facts, l *list) {
	mend := "edit " + f.Config.Path + " as docs/reference/azure-json.md says"
	for _, p := range f.Config.Problems {
		l.add(cmp.Or(p.Key, "file"), Problem, p.Message, mend)
	}
	for _, w := range f.Config.Warnings {
		l.add(cmp.Or(w.Key, "file"), Warning, w.Message, mend)
	}
}

func identity(f *Facts, l *list) {
	if f.TokenFault != "" {
		l.add("token", Problem, "the identity of azure.json gets none: "+f.TokenFault, "correct the identity in "+f.Config.Path+
			": docs/guides/identity.md; a managed identity has tokens on its machines only")
	}
}

func granted(f *Facts, l *list) {
	for _, r := range f.Rights.Missing {
		state := Problem
		if r.Degrades {
			state = Warning
		}
		l.add(r.Action, state, fmt.Sprintf("the identity has no such right on %s; it is needed to %s", r.At, r.Why),
			"az role assignment create --assignee IDENTITY --role ROLE --scope "+string(r.At)+" with a ROLE of docs/reference/roles.md")
	}
	for _, u := range f.Rights.Unread {
		l.add(string(u.At), Unknown, "its permissions cannot be read: "+u.Fault,
			"az role assignment list --assignee IDENTITY --all, or grant Microsoft.Authorization/permissions/read")
	}
}

func clock(f *Facts, l *list) {
	if skew := f.Skew.Abs(); skew > maxSkew {
		direction := "ahead of"
		if f.Skew < 0 {
			direction = "behind"
		}
		l.add("this machine", Problem, fmt.Sprintf("its clock is %v %s Azure's", skew.Round(time.Minute), direction),
			"timedatectl set-ntp true")
	}
}

// versions compares the versions of kaz's components with each other and with the API server. Releases of kaz have the minor version of
// the Kubernetes that they are made for.
func versions(f *Facts, l *list) {
	server, err := version.ParseGeneric(f.APIServer)
	if err != nil {
		l.add("API server", Unknown, fmt.Sprintf("its version %q is not understood", f.APIServer), "kubectl version")
		return
	}
	if len(f.Components) == 0 {
		l.add("components", Unknown, "no pod of the cluster is one of kaz's components by its label and image",
			"nothing, if they run outside pods, as those of kaz local up do")
	}
	var newest *version.Version
	for _, c := range f.Components {
		if v, err := version.ParseGeneric(c.Version); err == nil && (newest == nil || newest.LessThan(v)) {
			newest = v
		}
	}
	const want = "want at most one minor version between them"
	for _, c := range f.Components {
		v, err := version.ParseGeneric(c.Version)
		in := fmt.Sprintf("%s in %d pods", c.Version, c.Pods)
		switch {
		case err != nil:
			l.add(c.Program, Unknown, fmt.Sprintf("the tag %q of its image in %d pods is no version", c.Version, c.Pods),
				"use images with the tag of a release")
		case apart(v, server):
			l.add(c.Program, Warning, fmt.Sprintf("%s, and the API server is %s: %s", in, f.APIServer, want),
				"install the release of kaz for the Kubernetes of this cluster: docs/guides/upgrade.md")
		case apart(v, newest):
			l.add(c.Program, Warning, fmt.Sprintf("%s, and another component is v%s: %s", in, newest, want),
				"upgrade it to the release of the others: docs/guides/upgrade.md")
		}
	}
}

func apart(a, b *version.Version) bool {
	minor := int(a.Minor()) - int(b.Minor())
	return a.Major() != b.Major() || minor > 1 || minor < -1
}

func quotas(f *Facts, l *list) {
	for _, u := range f.Usages {
		if u.Limit < 0 || u.Used == 0 || float64(u.Used) <= float64(u.Limit)*nearlyUsed {
			continue
		}
		state := Warning
		if u.Exceeded(1) {
			state = Problem
		}
		l.add(u.Name, state, fmt.Sprintf("%d of %d are used", u.Used, u.Limit),
			"request a greater quota in the portal of Azure (Quotas), or remove what is not needed")
	}
}
