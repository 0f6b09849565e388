// Package guest runs programs on a second Linux kernel, for tests of file systems that the kernel of this machine does not
// have: SMB (cifs) and NFS. For tests only. Layer L4.
//
// A guest is a user-mode Linux: a kernel that is an ordinary process. Its root directory is that of the host with an
// overlay in memory. The guest sees every program and file of the host, and may write everywhere. Of the host it changes
// only the directories that it is given. Its one network link leads to a network namespace of the host, where the test has
// its servers. [Run] runs one program. [Main] runs all tests of a package in a guest.
package guest
