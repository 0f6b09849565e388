package engine

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"

	"kaz/internal/azure"
	"kaz/internal/cluster"
	"kaz/internal/cluster/change"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/pki"
	"kaz/internal/cluster/record"
	"kaz/internal/cluster/rotate"
)

// trust simulates the certificate authorities of machines. A member has those that the key vault had when the member booted.
// A node has those of the ConfigMap for machines that join. The controller manager of the oldest member publishes its
// authorities to pods. Each member has a pod of a DaemonSet.
type trust struct {
	members map[string][]pki.Authority // of the cluster, of etcd, of the front proxy
	nodes   map[string]pki.Authority
	leader  string
	roots   []byte
	since   time.Time            // when the roots of pods changed
	pods    map[string]time.Time // of members, since when
}

// rotating adds the certificate authorities to a simulation.
func (s *simulation) rotating() {
	s.l.t.Helper()
	s.trust = &trust{members: map[string][]pki.Authority{}, nodes: map[string]pki.Authority{}, pods: map[string]time.Time{}}
	first := s.vaultAuthority(rotate.Authority)
	s.configMap(metav1.NamespacePublic, "cluster-info", map[string]string{
		"jws-kubeconfig-abcdef": "signed",
		"kubeconfig": "apiVersion: v1\nkind: Config\nclusters:\n- name: \"\"\n  cluster:\n    server: https://api\n    certificate-authority-data: " +
			base64.StdEncoding.EncodeToString(first.Trusted()) + "\n",
	})
	s.configMap(metav1.NamespaceSystem, "extension-apiserver-authentication", map[string]string{
		"client-ca-file": string(first.Trusted()), "requestheader-client-ca-file": string(s.vaultAuthority(rotate.FrontProxy).Trusted()),
	})
	s.client.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		s.nodes()
		list := &corev1.ConfigMapList{}
		for _, namespace := range []string{"default", metav1.NamespaceSystem} {
			list.Items = append(list.Items, corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "kube-root-ca.crt", Namespace: namespace, CreationTimestamp: metav1.NewTime(s.trust.since)},
				Data:       map[string]string{"ca.crt": string(s.trust.roots)},
			})
		}
		return true, list, nil
	})
	for _, name := range s.nodes() {
		s.bootAuthorities(name)
	}
	s.nodes()
}

func (s *simulation) configMap(namespace, name string, data map[string]string) {
	s.l.t.Helper()
	_, err := s.client.CoreV1().ConfigMaps(namespace).Create(context.Background(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Data: data}, metav1.CreateOptions{})
	if err != nil {
		s.l.t.Fatal(err)
	}
}

// vaultAuthority reads an authority from the key vault, independent of the engine under test.
func (s *simulation) vaultAuthority(what string) pki.Authority {
	s.l.t.Helper()
	a, err := rotate.Rotation{Planes: s.l.azure.Vaults(), Names: s.names}.Authority(context.Background(), what)
	if err != nil {
		s.l.t.Fatal(err)
	}
	return a
}

// discovery are the authorities that machines which join get.
func (s *simulation) discovery() []byte {
	s.l.t.Helper()
	object, err := s.client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("configmaps"), metav1.NamespacePublic, "cluster-info")
	if err != nil {
		s.l.t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(object.(*corev1.ConfigMap).Data["kubeconfig"] +
		"contexts: [{name: a, context: {cluster: \"\"}}]\ncurrent-context: a\n"))
	if err != nil {
		s.l.t.Fatal(err)
	}
	return config.CAData
}

// bootAuthorities gives a machine the authorities that there are when it boots. A node gets a certificate of the authority of the leader.
func (s *simulation) bootAuthorities(name string) {
	if s.trust == nil {
		return
	}
	if s.member(name) {
		s.trust.members[name] = []pki.Authority{s.vaultAuthority(rotate.Authority), s.vaultAuthority(rotate.EtcdCA), s.vaultAuthority(rotate.FrontProxy)}
		s.trust.pods[name] = time.Now()
		return
	}
	s.trust.nodes[name] = s.vaultAuthority(rotate.Authority)
	if !s.trust.nodes[name].SameTrust(s.discovery()) {
		s.l.t.Errorf("%s joins with other authorities than the key vault has", name)
	}
	if join := s.join(); !slices.ContainsFunc(s.trust.nodes[name].Certificates(), func(c *x509.Certificate) bool {
		return pki.Pin(c) == join.CACertHash
	}) {
		s.l.t.Errorf("%s does not recognise the cluster", name)
	}
}

func (t *trust) forget(name string) {
	if t != nil {
		delete(t.members, name)
		delete(t.nodes, name)
		delete(t.pods, name)
	}
}

// restart replaces the pod of a member.
func (t *trust) restart(pod string) bool {
	name, agent := strings.CutPrefix(pod, "agent-")
	if t == nil || !agent {
		return false
	}
	t.pods[name] = time.Now()
	return true
}

// agents are the pods of members.
func (s *simulation) agents() []corev1.Pod {
	if s.trust == nil {
		return nil
	}
	var all []corev1.Pod
	for name, since := range s.trust.pods {
		all = append(all, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "agent-" + name, Namespace: metav1.NamespaceSystem, CreationTimestamp: metav1.NewTime(since),
				OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent", Controller: new(true)}}},
			Spec: corev1.PodSpec{NodeName: name, Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}}}},
			}}}},
		})
	}
	return all
}

// trusted publishes the authorities of the leader to pods. It checks that each machine and the members accept each other's
// certificates.
func (s *simulation) trusted(all []string) {
	s.l.t.Helper()
	t := s.trust
	if t == nil {
		return
	}
	var members []string
	for _, name := range all {
		if s.member(name) && !s.removed[name] && t.members[name] != nil {
			members = append(members, name)
		}
	}
	if len(members) == 0 {
		return
	}
	if !slices.Contains(members, t.leader) {
		t.leader = members[0]
	}
	if roots := t.members[t.leader][0].Trusted(); string(roots) != string(t.roots) {
		t.roots, t.since = roots, time.Now()
	}
	for _, name := range members {
		for _, other := range members {
			for i := range t.members[name] {
				s.accept(other, name, t.members[other][i], t.members[name][i])
			}
		}
		for _, other := range all {
			if node, has := t.nodes[other]; has {
				s.accept(other, name, node, t.members[name][0])
				s.accept(name, other, t.members[name][0], node)
			}
		}
	}
}

// accept checks that a machine accepts a certificate that the authority of another one issued.
func (s *simulation) accept(machine, other string, trusts, issues pki.Authority) {
	s.l.t.Helper()
	if !slices.ContainsFunc(trusts.Certificates(), issues.Certificates()[0].Equal) {
		s.l.t.Errorf("%s does not accept a certificate of %s", machine, other)
	}
}

// rotateAuthorities carries a phase out, with a kubeconfig as kaz cluster kubeconfig makes it.
func (l *lab) rotateAuthorities(s *simulation, phase change.AuthorityPhase) error {
	l.t.Helper()
	authority := s.vaultAuthority(rotate.Authority).Newest()
	certificate, _, err := authority.Client("me", "", time.Now(), time.Now().Add(time.Hour))
	if err != nil {
		l.t.Fatal(err)
	}
	r, err := l.AuthorityRotation(l.t.Context(), s.names, phase, rotate.Client{Roots: authority.Trusted(), Certificate: certificate})
	if err != nil {
		return err
	}
	return l.Change(l.t.Context(), r)
}

// inPhase checks that all machines have the authorities of the key vault, and that these are in a phase. Pods must have the
// authorities that servers have.
func (s *simulation) inPhase(want pki.Phase) {
	s.l.t.Helper()
	for i, what := range []string{rotate.Authority, rotate.EtcdCA, rotate.FrontProxy} {
		a := s.vaultAuthority(what)
		if a.Phase() != want {
			s.l.t.Errorf("%s is %s, want %s", what, a.Phase(), want)
		}
		for name, all := range s.trust.members {
			if string(all[i].Trusted()) != string(a.Trusted()) {
				s.l.t.Errorf("%s has not the authority %s of the key vault", name, what)
			}
		}
		if i > 0 {
			continue
		}
		for name, node := range s.trust.nodes {
			if !node.SameTrust(a.Trusted()) {
				s.l.t.Errorf("node %s has not the authority of the key vault", name)
			}
		}
		if !a.SameTrust(s.trust.roots) || !a.SameTrust(s.discovery()) {
			s.l.t.Error("pods or machines that join get other authorities than the key vault has")
		}
	}
	if want == pki.Trusting {
		for name, since := range s.trust.pods {
			if !since.After(s.trust.since) {
				s.l.t.Errorf("pods of %s started before they got the next authority", name)
			}
		}
	}
}

// TestAuthorityRotation checks scenario 43 for the certificate authorities: each of the three phases replaces every machine,
// and all machines accept each other at every moment. The phases can only be run in order, and each needs a client that is
// accepted after it.
func TestAuthorityRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, nil, "ha.yaml")
		s.rotating()
		first, begin := s.vaultAuthority(rotate.Authority), s.nodes()
		r, err := l.AuthorityRotation(t.Context(), s.names, change.Trust, rotate.Client{})
		if err != nil {
			t.Fatal(err)
		}
		steps, err := l.Steps(t.Context(), r)
		if err != nil || len(steps) < 20 || steps[0].String() != "edit the certificate authorities: the next are trusted" {
			t.Errorf("a dry run: %v %v", err, steps)
		}
		if err := l.rotateAuthorities(s, change.Issue); err == nil || !strings.Contains(err.Error(), "want kaz cluster rotate prod --authorities") {
			t.Errorf("the second phase first: %v", err)
		}
		if err := l.rotateAuthorities(s, change.Trust); err != nil {
			t.Fatalf("%v\n%s", err, strings.Join(l.said, "\n"))
		}
		s.inPhase(pki.Trusting)
		old := rotate.Client{Roots: first.Trusted()}
		if _, err := l.AuthorityRotation(t.Context(), s.names, change.Issue, old); err == nil || !strings.Contains(err.Error(), "kubeconfig prod") {
			t.Errorf("a client that does not trust the next authority: %v", err)
		}
		if status, err := l.Status(t.Context(), s.names); err != nil || status.Authorities != "the next are trusted, and the former issue" {
			t.Errorf("status: %v %q", err, status.Authorities)
		}
		if err := l.rotateAuthorities(s, change.Issue); err != nil {
			t.Fatalf("%v\n%s", err, strings.Join(l.said, "\n"))
		}
		s.inPhase(pki.Issuing)
		old.Certificate, _, _ = first.Client("me", "", time.Now(), time.Now().Add(time.Hour))
		if _, err := l.AuthorityRotation(t.Context(), s.names, change.Finish, old); err == nil || !strings.Contains(err.Error(), "to be forgotten") {
			t.Errorf("a client with a certificate of the former authority: %v", err)
		}
		if err := l.rotateAuthorities(s, change.Finish); err != nil {
			t.Fatalf("%v\n%s", err, strings.Join(l.said, "\n"))
		}
		s.inPhase(pki.Settled)
		for _, name := range s.nodes() {
			if slices.Contains(begin, name) {
				t.Errorf("%s is as before", name)
			}
		}
		clients, err := s.client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
		if err != nil || clients.Data["client-ca-file"] != string(s.vaultAuthority(rotate.Authority).Trusted()) ||
			clients.Data["requestheader-client-ca-file"] != string(s.vaultAuthority(rotate.FrontProxy).Trusted()) {
			t.Errorf("API servers of extensions accept clients of the former authority: %v", err)
		}
		if slices.ContainsFunc(s.vaultAuthority(rotate.Authority).Certificates(), first.Certificates()[0].Equal) {
			t.Error("the former authority is in the key vault")
		}
		l.unchanged(d, "ha.yaml")
	})
}

// TestAuthoritiesKept checks that other changes between the phases of a rotation keep its phase. These changes are a
// deployment and an upgrade from files, which do not contain the phase, and a repair.
func TestAuthoritiesKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, nil, "dev.yaml")
		s.rotating()
		if err := l.rotateAuthorities(s, change.Trust); err != nil {
			t.Fatalf("%v\n%s", err, strings.Join(l.said, "\n"))
		}
		before := s.nodes()
		p, err := cluster.New(d)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := l.Deploy(t.Context(), p, l.save); err != nil || !r.Unchanged {
			t.Errorf("a deployment from the file: %v %+v", err, r)
		}
		if steps, err := l.Steps(t.Context(), record.Change{Definition: d}); err != nil || len(steps) > 0 {
			t.Errorf("an upgrade from the file: %v %v", err, steps)
		}
		if l.change(d); !slices.Equal(before, s.nodes()) {
			t.Errorf("an upgrade from the file replaced machines: %v, before %v", s.nodes(), before)
		}
		if err := l.Change(t.Context(), record.Change{Definition: d, Replace: []string{"cp-0-1"}}); err != nil {
			t.Fatal(err)
		}
		newer := copied(d)
		newer.Cluster.Spec.Kubernetes.Version = "1.37.1"
		l.change(newer)
		s.inPhase(pki.Trusting)
		if err := l.rotateKeys(s, false); err != nil {
			t.Fatalf("the key of service accounts between the phases: %v", err)
		}
		for _, phase := range []change.AuthorityPhase{change.Issue, change.Finish} {
			if err := l.rotateAuthorities(s, phase); err != nil {
				t.Fatal(err)
			}
		}
		s.inPhase(pki.Settled)
	})
}

// TestAuthoritiesAborted checks that an aborted phase begins anew. In between an upgrade has made machines with the previous
// authorities.
func TestAuthoritiesAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, nil, "dev.yaml")
		s.rotating()
		number := 0
		for i, phase := range change.Phases() {
			number++
			last := fmt.Sprintf("-cp-0-%d", number)
			s.absent = func(machine string) bool { return strings.HasSuffix(machine, last) }
			if err := l.rotateAuthorities(s, phase); err == nil || !strings.Contains(err.Error(), "not ready after 1m0s: dev-cp-0-") {
				t.Fatalf("%s: got %v", phase, err)
			}
			if err := l.rotateKeys(s, false); err == nil || !strings.Contains(err.Error(), "another change") {
				t.Errorf("another change beside it: %v", err)
			}
			if err := l.Close(t.Context(), s.names); err != nil {
				t.Fatal(err)
			}
			s.absent = func(string) bool { return false }
			l.change(d)
			if err := l.rotateAuthorities(s, phase); err != nil {
				t.Fatalf("%s: %v\n%s", phase, err, strings.Join(l.said, "\n"))
			}
			s.inPhase([]pki.Phase{pki.Trusting, pki.Issuing, pki.Settled}[i])
		}
	})
}

// TestUntrusted checks that an error about a server of another authority says what to do.
func TestUntrusted(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	answer, err := (&http.Client{Transport: &http.Transport{}}).Get(server.URL)
	if err == nil {
		t.Fatal(answer.Body.Close(), "the server is trusted")
	}
	var d definition.Definition
	d.Cluster.Metadata.Name = "prod"
	if got := rotate.Untrusted(d, err); got == nil || !errors.Is(got, err) || !strings.HasSuffix(got.Error(), "kaz cluster kubeconfig prod") {
		t.Errorf("got %v", got)
	}
	if other := rotate.Untrusted(d, io.ErrUnexpectedEOF); other.Error() != io.ErrUnexpectedEOF.Error() {
		t.Errorf("another error: %v", other)
	}
}

// TestOwnAuthorities checks that a definition with files of its own for authorities is refused.
func TestOwnAuthorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, _ := deployed(t, func(d *definition.Definition) {
			d.Cluster.Spec.Kubernetes.ControllerManager.ExtraArgs = map[string]string{"cluster-signing-cert-file": "/etc/own.crt"}
		}, "dev.yaml")
		s.rotating()
		if err := l.rotateAuthorities(s, change.Trust); err == nil ||
			!strings.Contains(err.Error(), "controllerManager.extraArgs.cluster-signing-cert-file: /etc/own.crt") {
			t.Errorf("got %v", err)
		}
	})
}

// TestAuthorityRotationKilled checks that each phase can be resumed after it was killed at any write. No key is in the record
// or in the output. One cluster goes through all phases, and each of them dies.
func TestAuthorityRotationKilled(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 11 // odd, so that it dies before some writes and after others
	}
	synctest.Test(t, func(t *testing.T) {
		for kill := 0; ; kill += step {
			l, s, _ := deployed(t, nil, "dev.yaml")
			s.rotating()
			died := false
			for i, phase := range change.Phases() {
				died = l.killAuthorities(s, phase, kill) || died
				s.inPhase([]pki.Phase{pki.Trusting, pki.Issuing, pki.Settled}[i])
			}
			if !died {
				t.Logf("%d places to die", kill)
				return
			}
		}
	})
}

// killAuthorities carries out a phase with an engine that is killed, and resumes it with another one. It returns false if the
// engine was not killed.
func (l *lab) killAuthorities(s *simulation, phase change.AuthorityPhase, kill int) bool {
	t := l.t
	t.Helper()
	healthy := l.azure.Transport()
	k := &killed{next: healthy, left: kill, late: kill%2 == 1}
	l.connect(k)
	s.connect(l.Engine)
	victim := *l
	s.client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		if k.dies() {
			return true, nil, io.ErrUnexpectedEOF
		}
		return false, nil, nil
	})
	err := victim.rotateAuthorities(s, phase)
	died := k.spent
	k.left, k.spent = 1000, false // the next engine lives
	l.connect(healthy)
	s.connect(l.Engine)
	open, openErr := l.Open(t.Context(), s.names)
	state, readErr := l.Read(t.Context(), s.names)
	switch {
	case openErr != nil || readErr != nil:
		t.Fatal(openErr, readErr)
	case open != nil:
		doc, noDoc := l.client.Get(t.Context(), record.VersionID(s.names, record.ChangeVersion))
		if noDoc != nil || strings.Contains(string(doc), "BEGIN") {
			t.Errorf("the record of the change: %v, or it has a key", noDoc)
		}
		// An answer that comes too late ends a command. The next one goes on.
		if _, err = l.Resume(t.Context(), s.names); azure.KindOf(err) == azure.Unavailable {
			_, err = l.Resume(t.Context(), s.names)
		}
	case change.AuthorityPhaseAfter(state.Definition.Authorities) == phase:
		err = l.rotateAuthorities(s, phase) // it died before it was recorded
	case died:
		err = nil // it died when all was done
	}
	if err != nil {
		t.Fatalf("died at %d: %v\n%s", kill, err, strings.Join(l.said, "\n"))
	}
	if strings.Contains(strings.Join(l.said, "\n"), "BEGIN") {
		t.Errorf("died at %d: a key was said", kill)
	}
	return died
}
