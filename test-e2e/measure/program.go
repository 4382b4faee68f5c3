// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Program is one that runs in the cluster, in one process or several.
type Program struct {
	// Path is where it is, for a container in its image.
	Path string
	// file of /proc/PID has the text only in processes of the cluster.
	file, text string
}

// InContainers is a program at the top of its image. The kubelet starts it again. Group is
// how the control groups of the cluster begin.
func InContainers(name, group string) Program {
	return Program{Path: "/" + name, file: "cgroup", text: group}
}

// OnHost is a program that the cluster was started with. Mark is a variable that its processes have.
func OnHost(path, mark string) (Program, error) {
	path, err := filepath.EvalSymlinks(path)
	return Program{Path: path, file: "environ", text: mark}, err
}

// Signal sends a signal to all its processes. There has to be one.
func (p Program) Signal(signal syscall.Signal) error {
	all, err := p.processes()
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("no process of %s was found", p.Path)
	}
	for _, pid := range all {
		if e := syscall.Kill(pid, signal); !errors.Is(e, syscall.ESRCH) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// Count returns how many processes it has.
func (p Program) Count() (int, error) {
	all, err := p.processes()
	return len(all), err
}

// processes returns the numbers of its processes.
func (p Program) processes() ([]int, error) {
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return nil, err
	}
	var all []int
	for _, link := range links {
		text, _ := os.ReadFile(filepath.Join(filepath.Dir(link), p.file))
		if exe, err := os.Readlink(link); err != nil || exe != p.Path || !bytes.Contains(text, []byte(p.text)) {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(link, "/proc/%d/", &pid); err != nil {
			return nil, err
		}
		all = append(all, pid)
	}
	return all, nil
}

// restart is how long a program may take to end when it is killed.
const restart = 30 * time.Second

// Restart kills its one process, and starts it again with the same arguments, environment,
// folder and logs, in the same namespaces.
func (p Program) Restart() error {
	all, err := p.processes()
	if err != nil {
		return err
	}
	if len(all) != 1 {
		return fmt.Errorf("%d processes of %s run, want 1", len(all), p.Path)
	}
	again, err := p.like(all[0])
	if err != nil {
		return err
	}
	defer again.Stdout.(*os.File).Close()
	defer again.Stderr.(*os.File).Close()
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	// It has its ports until its last thread has ended, and its parent knows.
	for end := time.Now().Add(restart); syscall.Kill(all[0], 0) == nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("%s has not ended %s after it was killed", p.Path, restart)
		}
	}
	if err := again.Start(); err != nil {
		return err
	}
	go func() { _ = again.Wait() }()
	return nil
}

// like returns a command like that of a process.
func (p Program) like(pid int) (*exec.Cmd, error) {
	proc := fmt.Sprintf("/proc/%d/", pid)
	args, err1 := os.ReadFile(proc + "cmdline")
	environ, err2 := os.ReadFile(proc + "environ")
	dir, err3 := os.Readlink(proc + "cwd")
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	first, err := firstOf(pid)
	if err != nil {
		return nil, err
	}
	list := func(b []byte) []string { return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00") }
	cmd := exec.Command("nsenter", append([]string{
		"--target=" + strconv.Itoa(first), "--mount", "--uts", "--ipc", "--net", "--pid", "--wd=" + dir, p.Path,
	}, list(args)[1:]...)...)
	cmd.Env = list(environ)
	stdout, err1 := os.OpenFile(proc+"fd/1", os.O_APPEND|os.O_WRONLY, 0)
	stderr, err2 := os.OpenFile(proc+"fd/2", os.O_APPEND|os.O_WRONLY, 0)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, errors.Join(err1, err2)
}

// firstOf returns the first process of the PID namespace of a process, which lives as long as that: the
// parent may end with its child.
func firstOf(pid int) (int, error) {
	namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	if err != nil {
		return 0, err
	}
	links, err := filepath.Glob("/proc/[0-9]*/ns/pid")
	if err != nil {
		return 0, err
	}
	for _, link := range links {
		dir := filepath.Dir(filepath.Dir(link))
		if other, err := os.Readlink(link); err != nil || other != namespace {
			continue
		}
		status, _ := os.ReadFile(filepath.Join(dir, "status"))
		_, numbers, _ := strings.Cut(string(status), "\nNSpid:")
		numbers, _, _ = strings.Cut(numbers, "\n")
		if fields := strings.Fields(numbers); len(fields) > 0 && fields[len(fields)-1] == "1" {
			return strconv.Atoi(filepath.Base(dir))
		}
	}
	return 0, fmt.Errorf("no first process in the namespace of process %d", pid)
}
