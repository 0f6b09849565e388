// Package rights knows which actions of Azure the programs need, at which scopes and
// what for, and tells what is missing of what somebody was given. Layer L1:
// decisions only.
//
// The table is the one source: a program compares it at start with the rights that
// Azure says it has, and the role definitions for users are made of it.
package rights
