// Package windows is the system of a machine with Windows for the node service of the disk driver. It finds a disk by its
// LUN, formats it with NTFS, shows its volume by links and grows its partition. The driver runs in a host-process container
// and asks Windows by PowerShell. All decisions are plain code that any system can test; only host_windows.go needs Windows.
// Layer L3.
package windows
