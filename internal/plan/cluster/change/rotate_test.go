package change

import (
	"fmt"
	"math/rand/v2"
	"slices"
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

// TestTokenAnywhere checks that at every moment of a rotation the API server takes the token in the key vault, also beside an upgrade,
// and that at the end it is a new one and the old ones end.
func TestTokenAnywhere(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		to := Target{Version: "1.37.1", Members: 3, Tokens: map[string]bool{}, Pools: []PoolTarget{{Name: "general", Replicas: 2, Surge: 1}}}
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
