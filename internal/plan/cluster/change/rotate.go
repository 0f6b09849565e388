package change

import "slices"

// The actions of a rotation of the join token. The key vault publishes it to machines that boot.
const (
	MakeToken    Action = "make a join token"
	PublishToken Action = "publish the join token"
	EndToken     Action = "end the join token"
)

// Token is a join token that the API server takes. Its ID is no secret.
type Token struct {
	ID string
	// Ends says that it ends so soon that nothing is left to do: no machine that boots later can use it.
	Ends bool
}

// newToken stands for the ID of a token that is not made yet.
const newToken = "(new)"

// rotateToken replaces the join token. Machines that boot read the key vault, so the API server takes the new token before the vault
// has it, and the old one until the machines that boot now have joined.
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
