// Package observe is how a program shows what it does: a logger, metrics and
// health. Layer L2: any package may be handed what it builds, and the
// decisions of L0 and L1, which show nothing, may not import it.
package observe
