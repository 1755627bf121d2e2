import { request } from 'undici';
import type { Component } from '../component.ts';
import { ensureKubeProgram } from './kube.ts';

const NAME = 'etcd';

/** The API server's store; without fsync, since its data live as long as the run. */
export const etcd: Component = {
  name: NAME,
  needs: [],
  ensureInstalled: (run, signal) => ensureKubeProgram(run, NAME, signal),
  start: async (run) => {
    const client = `http://127.0.0.1:${await run.ports.take()}`;
    const peer = `http://127.0.0.1:${await run.ports.take()}`;
    run.etcd = client;
    run.processes.start({
      name: NAME,
      file: run.program(NAME),
      args: [
        `--data-dir=${run.path('etcd')}`,
        `--listen-client-urls=${client}`,
        `--advertise-client-urls=${client}`,
        `--listen-peer-urls=${peer}`,
        `--initial-advertise-peer-urls=${peer}`,
        `--initial-cluster=default=${peer}`,
        '--unsafe-no-fsync',
        '--log-level=warn',
      ],
    });
  },
  ready: async (run, signal) => {
    const { statusCode, body } = await request(`${run.etcd}/health`, { signal });
    await body.dump();
    return statusCode === 200;
  },
  stop: (run) => run.processes.stop(NAME),
};
