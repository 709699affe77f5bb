// Views that are large are loaded when they are first shown.
import type {ComponentType, JSX} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {showError} from './notify';
import {Loading} from './ui';

export function lazyView<P extends object>(load: () => Promise<ComponentType<P>>): (props: P) => JSX.Element {
  let known: ComponentType<P> | null = null;
  return function Lazy(props: P) {
    const [, draw] = useState(0);
    useEffect(() => {
      if (known) return;
      load().then((loaded) => {
        known = loaded;
        draw(1);
      }, showError);
    }, []);
    const View = known;
    return View ? <View {...props} /> : <Loading />;
  };
}
