import type { Component, Run } from '../component.ts';
import { pushImage } from '../node/push.ts';
import { busyboxImage, kanikoImage, pauseImage } from '../node/recipes.ts';

const NAME = 'node-images';

/** OCI layouts of the images by the name of their repository. */
const layouts = new WeakMap<Run, { pause: string; busybox: string; kaniko: string }>();

/** Fills the registry of base images with what pods need. */
export const nodeImages: Component = {
  name: NAME,
  needs: ['base-registry'],
  ensureInstalled: async (run, signal) => {
    layouts.set(run, {
      pause: await pauseImage(run, signal),
      busybox: await busyboxImage(run.host, signal),
      kaniko: await kanikoImage(run, signal),
    });
  },
  start: async (run, signal) => {
    const made = layouts.get(run);
    const target = run.node.baseRegistry;
    if (!made || !target) throw new Error('the images were not made, or their registry did not tell its address');
    run.node.pauseImage = await pushImage(made.pause, target, 'pause', signal);
    run.node.images = {
      busybox: await pushImage(made.busybox, target, 'busybox', signal),
      kaniko: await pushImage(made.kaniko, target, 'kaniko', signal),
    };
  },
  ready: async () => true,
  stop: async () => undefined,
};
