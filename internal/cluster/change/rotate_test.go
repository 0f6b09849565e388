package change

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestToken shows the plans of rotations of the join token.
func TestToken(t *testing.T) {
	to := Target{Version: "1.36.2", Members: 1, Tokens: map[string]bool{"aaaaaa": true, "bbbbbb": true}}
	for name, test := range map[string]struct {
		vault  string
		tokens []Token
		want   string
	}{
		"a token": {"aaaaaa", []Token{{ID: "aaaaaa"}},
			"make a join token\npublish the join token (new)\nend the join token aaaaaa"},
		"made and not published": {"aaaaaa", []Token{{ID: "aaaaaa"}, {ID: "cccccc"}},
			"publish the join token cccccc\nend the join token aaaaaa"},
		"left of a rotation that was aborted": {"aaaaaa", []Token{{ID: "aaaaaa"}, {ID: "bbbbbb"}},
			"make a join token\npublish the join token (new)\nend the join token aaaaaa\nend the join token bbbbbb"},
		"the API server does not take the token of the vault": {"aaaaaa", nil,
			"make a join token\npublish the join token (new)"},
		"the new one was deleted": {"cccccc", []Token{{ID: "aaaaaa", Ends: true}},
			"make a join token\npublish the join token (new)"},
		"done": {"cccccc", []Token{{ID: "aaaaaa", Ends: true}, {ID: "cccccc"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			steps, err := Plan(Cluster{Version: "1.36.2", Members: members(1, "1.36.2"), Token: test.vault, Tokens: test.tokens}, to)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, lines(steps)); diff != "" {
				t.Error(diff)
			}
		})
	}
	steps, err := Plan(Cluster{Version: "1.36.2", Members: members(1, "1.36.2")}, Target{Version: "1.36.2", Members: 1})
	if err != nil || len(steps) > 0 {
		t.Errorf("a change without a rotation of the token: %v %v", steps, err)
	}
}

// TestTokenAnywhere checks that the API server takes the token in the key vault at every moment of a rotation, also together
// with an upgrade. At the end the vault has a new token, and the old tokens end.
func TestTokenAnywhere(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		to := Target{Version: "1.37.1", Members: 3, Tokens: map[string]bool{}, Pools: []PoolTarget{{Name: "general", Replicas: 2, Surge: "1"}}}
		c := Cluster{Version: "1.36.2", Members: members(1, "1.36.2"), Pools: general(random.IntN(4), "1.36.2")}
		for i := range random.IntN(3) + 1 {
			c.Token = fmt.Sprintf("token%d", i)
			c.Tokens = append(c.Tokens, Token{ID: c.Token})
			to.Tokens[c.Token] = true
		}
		end := run(t, c, to, func(c Cluster, s Step) {
			i := slices.IndexFunc(c.Tokens, func(k Token) bool { return k.ID == c.Token })
			if i < 0 || c.Tokens[i].Ends {
				t.Errorf("before %s: machines that boot get the token %s, of %+v", s, c.Token, c.Tokens)
			}
		})
		if to.Tokens[end.Token] {
			t.Errorf("the token is not replaced: %s", end.Token)
		}
		for _, k := range end.Tokens {
			if k.Ends != to.Tokens[k.ID] {
				t.Errorf("after the rotation: %+v", end.Tokens)
			}
		}
	}
}

// keyed follows a plan, with the keys that each member has since it booted: those of the key vault at that time.
type keyed struct {
	Cluster
	has map[string]Keys // by the ID of the member
}

func newKeyed(c Cluster) keyed {
	k := keyed{c, map[string]Keys{}}
	for _, m := range c.Members {
		k.has[m.ID()] = c.Keys
	}
	return k
}

// after is what is there after a step. Each new key gets a name of its own.
func (k keyed) after(s Step) keyed {
	next := keyed{Apply(k.Cluster, s), maps.Clone(k.has)}
	for i, id := range next.Keys.Accepted {
		if id == newKey {
			next.Keys.Next = fmt.Sprintf("key-%d", i)
			next.Keys.Accepted[i] = next.Keys.Next
		}
	}
	for _, m := range next.Members {
		if !slices.ContainsFunc(k.Members, func(before Member) bool { return before.ID() == m.ID() && before.Machine }) {
			next.has[m.ID()] = k.Keys
		}
	}
	return next
}

// outage names a member that signs with a key that another one does not accept, "" for none.
func (k keyed) outage() string {
	for _, one := range k.Members {
		for _, other := range k.Members {
			if one.Balanced && other.Balanced && !slices.Contains(k.has[other.ID()].Accepted, k.has[one.ID()].Signs) {
				return fmt.Sprintf("%s signs with %s, %s accepts %v", one.ID(), k.has[one.ID()].Signs, other.ID(), k.has[other.ID()].Accepted)
			}
		}
	}
	return ""
}

// reboot lets a member boot again, with the keys that the vault has now.
func (k keyed) reboot(i int) keyed {
	k.has = maps.Clone(k.has)
	k.has[k.Members[i].ID()] = k.Keys
	return k
}

// TestKeyRotation shows the two passes of a rotation, and the third one that ends it.
func TestKeyRotation(t *testing.T) {
	c := Cluster{Version: "1.36.2", Members: members(1, "1.36.2"), Saved: true, Keys: Keys{Signs: "old", Accepted: []string{"old"}}}
	replaced := func(before, after string) string {
		return strings.NewReplacer("OLD", before, "NEW", after).Replace("add member NEW 1.36.2\nstop sending requests to member OLD\n" +
			"drain member OLD\nremove from etcd OLD\ndelete the node of member OLD\ndelete the machine of member OLD\n")
	}
	r := NewKeyRotation(c.Keys, map[int]int{0: 0}, false)
	to := Target{Version: "1.36.2", Members: 1, Keys: &r}
	steps, err := Plan(c, to)
	want := "make the next key of service accounts\n" + replaced("cp-0", "cp-0-1") + "let the next key of service accounts sign\n" +
		replaced("cp-0-1", "cp-0-2") + "note that every member signs with the key of service accounts"
	if diff := cmp.Diff(want, lines(steps)); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, s := range steps {
		c = Apply(c, s)
	}
	r = NewKeyRotation(c.Keys, map[int]int{0: 2}, true)
	steps, err = Plan(c, to)
	want = "forget the former keys of service accounts\n" + strings.TrimSuffix(replaced("cp-0-2", "cp-0-3"), "\n")
	if diff := cmp.Diff(want, lines(steps)); diff != "" || err != nil {
		t.Error(err, diff)
	}
	c.Keys.Complete = false
	if _, err := Plan(c, to); !errors.Is(err, errIncomplete) {
		t.Errorf("the end of a rotation that is not complete: %v", err)
	}
}

// TestSecretsKeyRotation shows how a cluster begins to encrypt Secrets: all members can read with the key before one writes with it.
func TestSecretsKeyRotation(t *testing.T) {
	c := Cluster{Version: "1.36.2", Members: members(1, "1.36.2"), Saved: true, Keys: Keys{Signs: "identity", Accepted: []string{"identity"}}}
	r := NewSecretsKeyRotation(c.Keys, map[int]int{0: 0}, false)
	steps, err := Plan(c, Target{Version: "1.36.2", Members: 1, Keys: &r})
	var got []string
	for _, step := range steps {
		if step.Action.ofKeys() || step.Action == AddMember {
			got = append(got, step.String())
		}
		if step.Action.ofKeys() && !step.OfControlPlane() {
			t.Errorf("%s needs no look at etcd", step)
		}
		c = Apply(c, step)
	}
	want := []string{"make the next key that encrypts Secrets", "add member cp-0-1 1.36.2", "let the next key encrypt Secrets",
		"add member cp-0-2 1.36.2", "write all Secrets with the key that encrypts them"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q: %v", got, want, err)
	}
	c.Keys.Accepted = append(c.Keys.Accepted, "former")
	end := NewSecretsKeyRotation(c.Keys, map[int]int{0: 2}, true)
	if steps, err = Plan(c, Target{Version: "1.36.2", Members: 1, Keys: &end}); err != nil || steps[0].Action != DropSecretsKeys ||
		steps[1].Member != "cp-0-3" {
		t.Errorf("the end: %v %v", steps, err)
	}
	c.Keys.Complete = false
	if _, err := Plan(c, Target{Version: "1.36.2", Members: 1, Keys: &end}); !errors.Is(err, errSecretsIncomplete) {
		t.Errorf("the end of a rotation that is not complete: %v", err)
	}
}

// TestKeysAnywhere checks scenario 43 for the key of service accounts. At every moment each member that gets requests accepts
// the tokens of all others. That holds for each number of members, although a change is stopped at any step and begins anew,
// and although members boot again or die. At the end all members sign with the new key. After the end of the rotation they
// accept no other key.
func TestKeysAnywhere(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		count := []int{1, 3, 5}[seed%3]
		k := newKeyed(Cluster{Version: "1.36.2", Members: members(count, "1.36.2"), Keys: Keys{Signs: "old", Accepted: []string{"old"}}})
		for _, finish := range []bool{false, true} {
			former := k.Keys.Accepted
			k = rotated(t, random, k, finish)
			for _, m := range k.Members {
				has := k.has[m.ID()]
				if slices.Contains(former, has.Signs) && !finish || finish && !slices.Equal(has.Accepted, []string{has.Signs}) {
					t.Errorf("seed %d, finish %t: %s has %+v; the former keys were %v", seed, finish, m.ID(), has, former)
				}
			}
			if len(k.Members) != count {
				t.Errorf("seed %d: %d members, want %d", seed, len(k.Members), count)
			}
		}
	}
}

// rotated carries a rotation out. At random it is aborted and begins anew, members boot again, and their machines are lost.
func rotated(t *testing.T, random *rand.Rand, k keyed, finish bool) keyed {
	t.Helper()
	count := len(k.Members)
	var to *Target
	for range 2000 {
		if to == nil || !finish && random.IntN(60) == 0 {
			generations := map[int]int{}
			for _, m := range k.Members {
				generations[m.Index] = max(generations[m.Index], m.Generation)
			}
			r := NewKeyRotation(k.Keys, generations, finish)
			to = &Target{Version: "1.36.2", Members: count, Keys: &r}
		}
		if random.IntN(10) == 0 {
			k = k.reboot(random.IntN(len(k.Members)))
		}
		step, err := Next(k.Cluster, *to)
		if err != nil {
			t.Fatal(err)
		}
		if step == nil {
			return k
		}
		if k = k.after(*step); k.outage() != "" {
			t.Fatalf("after %s: %s", step, k.outage())
		}
		if count > 1 && random.IntN(30) == 0 {
			k.lose(random)
		}
	}
	t.Fatal("the rotation does not end")
	return k
}

// lose lets the machine of a member vanish, if the others are a majority that is whole.
func (k *keyed) lose(random *rand.Rand) {
	voters, healthy := k.voters()
	i := random.IntN(len(k.Members))
	if voters != healthy || !k.Members[i].complete() || len(k.Members) < 3 {
		return
	}
	k.Members = slices.Clone(k.Members)
	m := &k.Members[i]
	if m.Leader {
		k.elect(m.ID())
	}
	m.Machine, m.Healthy, m.Balanced, m.Leader = false, false, false, false
}
