// Package windows is a machine with Windows for the node service of the disk driver: it finds a disk by its LUN, formats it
// with NTFS, shows its volume by links and grows its partition. Windows is asked by PowerShell, which the driver runs in a
// host-process container. All that decides is plain code which any system can test; host_windows.go alone needs
// Windows. Layer L3.
package windows
