package change

import (
	"errors"
	"maps"
	"slices"

	"kaz/internal/cluster/naming"
)

// The actions of a rotation of the join token. The key vault publishes it to machines that boot.
const (
	MakeToken    Action = "make a join token"
	PublishToken Action = "publish the join token"
	EndToken     Action = "end the join token"
)

// Token is a join token that the API server takes. Its ID is no secret.
type Token struct {
	ID string
	// Ends says that the token ends soon. Nothing is left to do then: no machine that boots later can use the token.
	Ends bool
}

// newToken stands for the ID of a token that is not made yet.
const newToken = "(new)"

// rotateToken replaces the join token. Machines that boot read the token from the key vault. So the API server takes the new
// token before the vault has it. It takes the old token until the machines that boot now have joined.
func (c Cluster) rotateToken(t Target) *Step {
	if len(t.Tokens) == 0 {
		return nil
	}
	old := func(k Token) bool { return t.Tokens[k.ID] }
	if t.Tokens[c.Token] || !slices.ContainsFunc(c.Tokens, func(k Token) bool { return k.ID == c.Token }) {
		i := slices.IndexFunc(c.Tokens, func(k Token) bool { return !old(k) && !k.Ends })
		if i < 0 {
			return &Step{Action: MakeToken}
		}
		return &Step{Action: PublishToken, Token: c.Tokens[i].ID}
	}
	i := slices.IndexFunc(c.Tokens, func(k Token) bool { return old(k) && !k.Ends })
	if i < 0 {
		return nil
	}
	return &Step{Action: EndToken, Token: c.Tokens[i].ID}
}

func (c *Cluster) applyToken(s Step) {
	switch s.Action {
	case MakeToken:
		c.Tokens = append(c.Tokens, Token{ID: newToken})
	case PublishToken:
		c.Token = s.Token
	case EndToken:
		for i := range c.Tokens {
			c.Tokens[i].Ends = c.Tokens[i].Ends || c.Tokens[i].ID == s.Token
		}
	}
}

// The actions of a rotation of the key of service accounts.
const (
	NextKey  Action = "make the next key of service accounts"
	SignKey  Action = "let the next key of service accounts sign"
	NoteKey  Action = "note that every member signs with the key of service accounts"
	DropKeys Action = "forget the former keys of service accounts"
)

// The actions of a rotation of the key that encrypts Secrets.
const (
	NextSecretsKey  Action = "make the next key that encrypts Secrets"
	UseSecretsKey   Action = "let the next key encrypt Secrets"
	RewriteSecrets  Action = "write all Secrets with the key that encrypts them"
	DropSecretsKeys Action = "forget the former keys that encrypted Secrets"
)

// keyActions are the actions of a rotation of keys: what makes the next key, uses it, comes after the last pass, and forgets the former
// keys.
type keyActions struct{ next, use, note, drop Action }

func (r KeyRotation) actions() keyActions {
	if r.Secrets {
		return keyActions{NextSecretsKey, UseSecretsKey, RewriteSecrets, DropSecretsKeys}
	}
	return keyActions{NextKey, SignKey, NoteKey, DropKeys}
}

// ofKeys reports whether an action changes keys of the key vault.
func (a Action) ofKeys() bool {
	for _, all := range []keyActions{KeyRotation{}.actions(), KeyRotation{Secrets: true}.actions()} {
		if a == all.next || a == all.use || a == all.note || a == all.drop {
			return true
		}
	}
	return false
}

// Keys are the keys of service accounts in the key vault, or those that encrypt Secrets, by their IDs, which are no secrets. A member has
// the keys that the vault had when it booted last.
type Keys struct {
	// Signs is the key that signs tokens or encrypts Secrets, Next the one that does so next, "" for none.
	Signs, Next string
	// Accepted are the keys with which tokens are checked, or Secrets are read.
	Accepted []string
	// Complete says that every member signs with Signs, or that all Secrets are written with it.
	Complete bool
}

// newKey stands for the ID of a key that is not made yet.
const newKey = "(new)"

// KeyRotation replaces the key of service accounts or the one that encrypts Secrets, or ends that: it forgets the former keys. It does not
// change while it goes on.
type KeyRotation struct {
	// Secrets says that it is about the keys that encrypt Secrets.
	Secrets bool `json:"secrets,omitempty"`
	// Former are the keys that the vault had when the rotation began, without a next one.
	Former []string `json:"former,omitempty"`
	// Finish says that it forgets the former keys.
	Finish bool `json:"finish,omitempty"`
	// Generations are those of the members when the rotation began, by index.
	Generations map[int]int `json:"generations"`
}

// NewKeyRotation begins a rotation of the keys that the vault has. A next key that is left of a rotation that was aborted is used.
func NewKeyRotation(k Keys, generations map[int]int, finish bool) KeyRotation {
	former := slices.DeleteFunc(slices.Clone(k.Accepted), func(id string) bool { return id == k.Next })
	return KeyRotation{Former: former, Finish: finish, Generations: generations}
}

// NewSecretsKeyRotation begins a rotation of the keys that encrypt Secrets.
func NewSecretsKeyRotation(k Keys, generations map[int]int, finish bool) KeyRotation {
	r := NewKeyRotation(k, generations, finish)
	r.Secrets = true
	return r
}

var (
	errIncomplete = errors.New("the key vault has keys of service accounts of a rotation that is not complete, so members may sign with " +
		"different keys: complete it first with kaz cluster rotate --service-account")
	errSecretsIncomplete = errors.New("the key vault has keys of a rotation that is not complete, so Secrets may be written with " +
		"different keys: complete it first with kaz cluster rotate --encryption")
)

// incomplete is the error of the end of a rotation that is not complete.
func (r KeyRotation) incomplete() error {
	if r.Secrets {
		return errSecretsIncomplete
	}
	return errIncomplete
}

// rotateKeys chooses the next step of a rotation of the key of service accounts or of the one that encrypts Secrets, or returns the target
// with the members that it replaces.
//
// A request may go to any member, so each member must accept the tokens of all others and read their Secrets at every moment. In the first
// pass over the members the new members accept the next key. In the second pass they use it. Each pass is complete before the vault changes
// again. A member that boots again in between has the keys of a later pass, which is as good.
func (c Cluster) rotateKeys(t Target, hop string) (*Step, Target, error) {
	r := t.Keys
	if r == nil {
		return nil, t, nil
	}
	do := r.actions()
	switch {
	case r.Finish && !c.Keys.Complete && (r.Secrets || len(c.Keys.Accepted) > 1):
		return nil, t, r.incomplete()
	case r.Finish && len(c.Keys.Accepted) > 1:
		return &Step{Action: do.drop}, t, nil
	case r.Finish:
		return nil, t.pass(1), nil
	case slices.Contains(r.Former, c.Keys.Signs) && c.Keys.Next == "":
		return &Step{Action: do.next}, t, nil
	}
	if slices.Contains(r.Former, c.Keys.Signs) {
		t = t.pass(1)
		return c.afterPass(t, hop, do.use)
	}
	t = t.pass(2)
	if c.Keys.Complete {
		return nil, t, nil
	}
	return c.afterPass(t, hop, do.note)
}

// afterPass is the next step of a pass over the members, and an action after its last one.
func (c Cluster) afterPass(t Target, hop string, after Action) (*Step, Target, error) {
	step, err := c.member(t, hop)
	if step == nil && err == nil {
		step = &Step{Action: after}
	}
	return step, t, err
}

// pass returns the target with which every member is replaced that was made before a pass of a rotation. The first pass is 1.
// Each pass raises the generation of each member by one. So a member with a generation of the pass was made after the pass
// began.
func (t Target) pass(number int) Target {
	t.Replace = maps.Clone(t.Replace)
	if t.Replace == nil {
		t.Replace = map[string]bool{}
	}
	most := t.Members
	for index := range t.Keys.Generations {
		most = max(most, index+1)
	}
	for index := range most {
		for generation := range t.Keys.Generations[index] + number {
			t.Replace[naming.MemberUnit(index, generation)] = true
		}
	}
	return t
}

func (c *Cluster) applyKeys(s Step) {
	k := &c.Keys
	switch s.Action {
	case NextKey, NextSecretsKey:
		k.Next, k.Complete = newKey, false
		k.Accepted = append(slices.Clone(k.Accepted), newKey)
	case SignKey, UseSecretsKey:
		k.Signs, k.Next = k.Next, ""
	case NoteKey, RewriteSecrets:
		k.Complete = true
	case DropKeys, DropSecretsKeys:
		k.Accepted = []string{k.Signs}
	}
}
