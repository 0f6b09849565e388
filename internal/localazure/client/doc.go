// Package client finds a running local Azure, lists and shows what is in it, and puts resources into it. Layer L4.
package client
