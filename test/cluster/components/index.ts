import type { Component, Host } from '../component.ts';
import { etcd } from './etcd.ts';
import { gitHttp } from './git-http.ts';
import { givenKubernetes } from './given-kubernetes.ts';
import { kubeApiserver } from './kube-apiserver.ts';
import { kubeControllerManager } from './kube-controller-manager.ts';
import { seaweedfs } from './seaweedfs.ts';
import { sshd } from './sshd.ts';

/** The components of a run in the order of their start; a later node (container runtime, kubelet, registry) is appended here. */
export function componentsFor(host: Host): readonly Component[] {
  const kubernetes = host.kubeconfig === undefined ? [etcd, kubeApiserver, kubeControllerManager] : [givenKubernetes];
  return [...kubernetes, seaweedfs, gitHttp, sshd];
}
