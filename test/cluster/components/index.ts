import type { Component, Host } from '../component.ts';
import { containerd } from './containerd.ts';
import { etcd } from './etcd.ts';
import { gitHttp } from './git-http.ts';
import { givenKubernetes } from './given-kubernetes.ts';
import { kubeApiserver } from './kube-apiserver.ts';
import { kubeControllerManager } from './kube-controller-manager.ts';
import { kubeProxy } from './kube-proxy.ts';
import { kubeScheduler } from './kube-scheduler.ts';
import { kubelet } from './kubelet.ts';
import { node } from './node.ts';
import { nodeImages } from './node-images.ts';
import { baseRegistry, registry } from './registry.ts';
import { seaweedfs } from './seaweedfs.ts';
import { sshd } from './sshd.ts';

/** The components of a run in the order of their start. With a node, the others listen on the address that the first one makes. */
export function componentsFor(host: Host): readonly Component[] {
  const kubernetes = host.kubeconfig === undefined ? [etcd, kubeApiserver, kubeControllerManager] : [givenKubernetes];
  const plain = [...kubernetes, seaweedfs, gitHttp, sshd];
  if (!host.node) return plain;
  return [node, ...plain, baseRegistry, registry, nodeImages, containerd, kubeScheduler, kubelet, kubeProxy];
}
