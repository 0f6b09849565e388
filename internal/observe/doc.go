// Package observe has the logger, metrics and health checks of a program. Layer L2: any package may
// receive what it creates. Packages of L0 and L1 do not import it.
package observe
